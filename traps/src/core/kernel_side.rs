//! The kernel's side of a gate: start and stop running, poll a task, take what it has filed.

use std::cell::RefMut;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

use super::gate::{Filed, GATE, Gate, LISTENING, Shared, identity, with};
use super::names::{HandleId, Site, TaskId, TaskRef, Ticket};
use super::protocol::Post;
use super::records::Records;
use super::table::NONE;
use crate::time::Time;

/// Numbers kernels across all threads, so that a waker can tell its own kernel from others.
static EPOCHS: AtomicU32 = AtomicU32::new(1);

/// Posts to the kernel that runs on this thread: a task's waker was called.
pub fn post_woken(task: TaskRef) {
    with(|gate| {
        if gate.task.get() == Some(task) {
            gate.self_wakes.set(gate.self_wakes.get().wrapping_add(1));
        }
    });
    super::posting::post(Post::Woken(task));
}

/// Posts to the kernel that runs on this thread: a ticket was unparked from outside its task.
pub fn post_unpark(ticket: Ticket) {
    super::posting::post(Post::Unpark(ticket));
}

/// The life of a kernel: registered, running, stopped, gone.
impl Gate {
    /// The gate of this thread, made at the first call and never freed.
    #[must_use]
    pub fn of_this_thread() -> &'static Gate {
        let gate = GATE.get().unwrap_or_else(|| {
            let gate: &'static Gate = Box::leak(Box::default());
            gate.end();
            gate
        });
        GATE.set(Some(gate));
        gate
    }

    /// Registers a kernel on this thread and numbers it.
    #[must_use]
    pub fn open(&self) -> u32 {
        let epoch = EPOCHS.fetch_add(1, Ordering::Relaxed);
        self.kernels.borrow_mut().push(epoch);
        epoch
    }

    /// Removes a kernel, and drops the posts for it.
    pub fn close(&self, epoch: u32) {
        self.kernels.borrow_mut().retain(|other| *other != epoch);
        self.take_later(epoch).into_iter().for_each(|post| self.discard(post));
    }

    fn take_later(&self, epoch: u32) -> Vec<Post> {
        let later = self.later.take();
        let (its, others): (Vec<_>, Vec<_>) =
            later.into_iter().partition(|(other, _)| *other == epoch);
        *self.later.borrow_mut() = others;
        its.into_iter().map(|(_, post)| post).collect()
    }

    /// Whether no kernel runs on this thread.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.epoch.get() == 0
    }

    /// Makes a kernel the one that runs on this thread. Posts that came while it did not run are
    /// filed.
    ///
    /// # Panics
    ///
    /// If another kernel is running on this thread: a kernel cannot run inside a kernel.
    pub fn enter(&self, kernel: &Rc<Shared>) {
        let rule = "rule: one kernel runs on a thread at a time; `run` was called inside `run`";
        assert!(self.is_free(), "{rule}");
        self.epoch.set(kernel.epoch);
        self.kernel.replace(Some(kernel.clone()));
        let posts = self.take_later(kernel.epoch);
        posts.into_iter().for_each(|post| self.push(Filed::Post(post)));
    }

    /// Marks the kernel as stopped. Its posts that it has not taken wait for its next run.
    pub fn leave(&self) {
        self.end();
        let epoch = self.epoch.replace(0);
        let kernel = self.kernel.take();
        for filed in self.take() {
            if let Filed::Post(post) = filed {
                self.post_to(epoch, post);
            }
        }
        drop(kernel);
    }

    /// Posts that wait for the next run of a kernel.
    #[must_use]
    pub fn count_later(&self, epoch: u32, counts: impl Fn(&Post) -> bool) -> usize {
        let later = self.later.borrow();
        later.iter().filter(|(other, post)| *other == epoch && counts(post)).count()
    }
}

/// The polls of a task.
impl Gate {
    /// Before a poll: sets the task, its place in the table of the kernel, and the clock as that
    /// has read it.
    #[inline]
    pub fn begin(&self, task: TaskRef, index: u32, now: Time) {
        self.task.set(Some(task));
        self.index.set(index);
        self.scope.set(task.index);
        self.now.set(now);
    }

    /// The waker that the task is polled with, so that the gate can recognise it.
    #[inline]
    pub fn set_waker(&self, waker: &Waker) {
        self.waker.set(identity(waker));
    }

    /// Sets how many I/O operations the task may do before it gives way.
    #[inline]
    pub fn set_budget(&self, operations: u32) {
        self.budget.set(operations);
    }

    /// The last reading of the clock, by the task or before its poll.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Time {
        self.now.get()
    }

    /// After a run.
    #[inline]
    pub fn end(&self) {
        self.task.set(None);
        self.scope.set(NONE);
    }

    /// Runs foreign code outside of any task, although a task is being served.
    pub fn aside<R>(&self, code: impl FnOnce() -> R) -> R {
        let task = self.task.take();
        let result = code();
        self.task.set(task);
        result
    }

    /// Whether every event is to be filed.
    pub fn listen(&self, listening: bool) {
        LISTENING.set(listening);
    }

    /// The waits and the scopes. Nothing foreign may be called while they are borrowed.
    #[inline]
    pub fn records(&self) -> RefMut<'_, Records> {
        self.records.borrow_mut()
    }

    /// Whether anything is filed.
    #[inline]
    #[must_use]
    pub fn has_filed(&self) -> bool {
        self.newest.get().is_some() || self.any_filed.get()
    }

    /// Takes the filed entry, if it is exactly one trap.
    #[inline]
    #[must_use]
    pub fn take_only(&self) -> Option<Ticket> {
        if self.any_filed.get() { None } else { self.newest.take() }
    }

    /// Takes everything that is filed, in program order.
    #[must_use]
    pub fn take(&self) -> Vec<Filed> {
        if let Some(newest) = self.newest.take() {
            self.push(Filed::Trap(newest));
        }
        self.any_filed.set(false);
        self.filed.take()
    }

    /// Returns the emptied list, so that the next poll need not allocate.
    pub fn give_back(&self, list: Vec<Filed>) {
        debug_assert!(list.is_empty(), "what was taken is handled first");
        let mut filed = self.filed.borrow_mut();
        // A long list is freed: a loop of spawns must not keep its room for ever.
        if filed.is_empty() && list.capacity() <= 1024 {
            *filed = list;
        }
    }

    /// Chooses the name and the number of a new task.
    ///
    /// # Panics
    ///
    /// If no kernel runs.
    #[must_use]
    pub fn new_task(&self, site: Site) -> (TaskRef, TaskId) {
        let kernel = self.kernel.borrow();
        let kernel = kernel.as_ref().expect("a task is made in a kernel that runs");
        kernel.tasks.set(kernel.tasks.get() + 1);
        let number = kernel.tasks.get();
        let root = self.records.borrow_mut().open_root(number, kernel.epoch, site);
        (root, TaskId(number))
    }

    /// A handle is gone.
    pub fn free_handle(&self, handle: HandleId) {
        self.handles.borrow_mut().remove(handle);
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("epoch", &self.epoch.get()).finish_non_exhaustive()
    }
}

/// Whether the kernel of that number is running on this thread now.
#[must_use]
pub fn is_running(epoch: u32) -> bool {
    super::gate::epoch() == epoch
}
