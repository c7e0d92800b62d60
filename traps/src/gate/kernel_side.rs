//! The kernel's side of a gate: start and stop running, poll a task, take its requests, put answers
//! in.

use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

use super::{GATE, Gate, Shared, identity};
use crate::interrupt::Interrupt;
use crate::protocol::{Answer, Asked, Filed, Owned, Post, ROOT, ScopeId, TaskRef, Ticket};
use crate::task::TaskId;

/// Numbers kernels across all threads, so that a waker can tell its own kernel from others.
static EPOCHS: AtomicU32 = AtomicU32::new(1);

/// Whether the kernel of that number is running on this thread now, and is not playing a scripted
/// job. For wakers, on any thread.
#[must_use]
pub fn is_running(epoch: u32) -> bool {
    super::epoch() == epoch && !crate::threads::is_in_job()
}

/// Posts to the kernel that runs on this thread: a task's waker was called.
pub fn post_woken(task: TaskRef) {
    super::with(|gate| {
        if gate.task.get() == Some(task) {
            // A task that woke itself in its poll has something to do, so the `Moment` is over.
            let _ = gate.next_serial();
        }
    });
    super::post(Post::Woken(task));
}

/// Posts to the kernel that runs on this thread: a ticket was woken from outside its task.
pub fn post_wake_ticket(ticket: Ticket) {
    super::post(Post::WakeTicket(ticket));
}

/// The life of a kernel: registered, running, stopped, gone.
impl Gate {
    /// The gate of this thread, made at the first call and never freed.
    #[must_use]
    pub fn of_this_thread() -> &'static Gate {
        let gate = GATE.get().unwrap_or_else(|| Box::leak(Box::new(Gate::new())));
        GATE.set(Some(gate));
        gate
    }

    /// Registers a kernel on this thread and numbers it.
    #[must_use]
    pub fn open(&self) -> u32 {
        self.kernels.set(self.kernels.get() + 1);
        EPOCHS.fetch_add(1, Ordering::Relaxed)
    }

    /// Removes a kernel. Returns the posts that no kernel will handle, to be dropped.
    #[must_use]
    pub fn close(&self) -> Vec<Post> {
        self.kernels.set(self.kernels.get() - 1);
        if self.kernels.get() > 0 { Vec::new() } else { self.later.take() }
    }

    /// Whether no kernel runs on this thread.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.epoch.get() == 0
    }

    /// Makes a kernel the one that runs on this thread. Posts that came while none ran are filed.
    ///
    /// # Panics
    ///
    /// If another kernel is running on this thread: a kernel cannot run inside a kernel.
    pub fn enter(&self, kernel: &Rc<Shared>) {
        let rule = "rule: one kernel runs on a thread at a time; `run` was called inside `run`";
        assert!(self.is_free(), "{rule}");
        self.epoch.set(kernel.epoch);
        self.kernel.replace(Some(kernel.clone()));
        self.later.take().into_iter().for_each(|post| self.push(Filed::Post(post)));
    }

    /// Marks the kernel as stopped. Its posts that it has not taken wait for its next run. Returns
    /// the rest, to be dropped.
    #[must_use]
    pub fn leave(&self) -> Vec<Filed> {
        self.end();
        self.flush();
        self.epoch.set(0);
        let kernel = self.kernel.take();
        let (posts, requests) = self.take().into_iter().partition(|filed| match filed {
            Filed::Post(_) => true,
            Filed::Request(_) => false,
        });
        let posts: Vec<Filed> = posts;
        self.later.borrow_mut().extend(posts.into_iter().filter_map(|filed| match filed {
            Filed::Post(post) => Some(post),
            Filed::Request(_) => None,
        }));
        drop(kernel);
        requests
    }

    /// Stores a post for another kernel of this thread. Returns it if there is none.
    #[must_use]
    pub fn pass_on(&self, post: Post) -> Option<Post> {
        if self.kernels.get() > 1 { self.post_later(Some(post)) } else { Some(post) }
    }

    /// Posts that wait for a kernel that is not running.
    #[must_use]
    pub fn count_later(&self, counts: impl Fn(&Post) -> bool) -> usize {
        self.later.borrow().iter().filter(|post| counts(post)).count()
    }

    /// A number that no task or handle of this thread has had.
    #[must_use]
    pub fn next_generation(&self) -> u32 {
        self.generation.set(self.generation.get().wrapping_add(1));
        self.generation.get()
    }
}

/// The polls of a task.
impl Gate {
    /// Before a poll: sets the task, its scope, whether an interrupt may be pending, and whether
    /// the task is to be polled when the shutdown begins.
    #[inline]
    pub fn begin(&self, task: TaskRef, root: ScopeId, has_sources: bool, watches: bool) {
        self.task.set(Some(task));
        self.scope.set(root.index);
        self.timeout.set(root);
        self.has_sources.set(has_sources);
        self.watches.set(watches);
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

    /// After a run.
    #[inline]
    pub fn end(&self) {
        self.task.set(None);
        self.scope.set(ROOT);
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
        super::LISTENING.set(listening);
    }

    /// Whether anything is filed.
    #[inline]
    #[must_use]
    pub fn has_filed(&self) -> bool {
        self.newest.get().is_some() || self.any_filed.get() || self.opened.get().is_some()
    }

    /// Takes the filed entry, if it is exactly one request.
    #[inline]
    #[must_use]
    pub fn take_only(&self) -> Option<Asked> {
        if self.any_filed.get() { None } else { self.newest.take() }
    }

    /// Takes everything that is filed, in program order.
    #[must_use]
    pub fn take(&self) -> Vec<Filed> {
        self.flush();
        self.any_filed.set(false);
        self.filed.take()
    }

    /// Returns the emptied list, so that the next poll need not allocate.
    pub fn give_back(&self, list: Vec<Filed>) {
        debug_assert!(list.is_empty(), "what was taken is heeded first");
        let mut filed = self.filed.borrow_mut();
        if filed.is_empty() {
            *filed = list;
        }
    }

    /// Takes the value that a request owns.
    #[must_use]
    pub fn take_owned(&self, serial: NonZeroU32) -> Option<Owned> {
        self.owned.take(serial)
    }

    /// Puts back what [`Gate::take_owned`] took, after a look at it.
    pub fn give_owned_back(&self, serial: NonZeroU32, owned: Owned) {
        self.owned.put(serial, owned);
    }

    /// Puts in an answer for the next poll.
    #[inline]
    pub fn answer(&self, serial: NonZeroU32, answer: Answer) {
        self.answers.put(serial, answer);
    }

    /// Puts in the value that an answer owns; the answer itself is [`Answer::Owned`].
    pub fn answer_owned(&self, serial: NonZeroU32, owned: Owned) {
        self.owned.put(serial, owned);
        self.answers.put(serial, Answer::Owned);
    }

    /// Whether the poll left an answer unread.
    #[inline]
    #[must_use]
    pub fn has_unread(&self) -> bool {
        self.answers.has_any()
    }

    /// Takes back an answer that the poll did not read.
    #[inline]
    #[must_use]
    pub fn take_unread(&self) -> Option<(NonZeroU32, Answer)> {
        self.answers.pop()
    }

    /// Lets the next poll end that scope, which fired around a wait on a foreign waker.
    pub fn offer(&self, scope: ScopeId, interrupt: Interrupt) {
        self.offers.borrow_mut().push((scope, interrupt));
        self.any_offers.set(true);
    }

    /// Takes back the scopes that the poll did not end.
    #[inline]
    pub fn clear_offers(&self) {
        if self.any_offers.replace(false) {
            drop(self.offers.take());
        }
    }

    /// Chooses the name and the number of a new task.
    ///
    /// # Panics
    ///
    /// If no kernel runs.
    #[must_use]
    pub fn new_task(&self) -> (TaskRef, TaskId) {
        let kernel = self.kernel.borrow();
        let kernel = kernel.as_ref().expect("a task is made in a kernel that runs");
        kernel.tasks.set(kernel.tasks.get() + 1);
        let task = TaskRef { index: self.tasks.take(), generation: self.next_generation() };
        (task, TaskId(kernel.tasks.get()))
    }

    /// Makes the index of a task that is gone free again.
    #[inline]
    pub fn free_task(&self, index: u32) {
        self.tasks.free(index);
    }

    /// Chooses the name of a scope that the kernel opens.
    ///
    /// # Panics
    ///
    /// If no kernel runs.
    #[must_use]
    pub fn new_scope(&self) -> ScopeId {
        let kernel = self.kernel.borrow();
        let kernel = kernel.as_ref().expect("a scope is opened in a kernel that runs");
        kernel.scopes.set(kernel.scopes.get() + 1);
        ScopeId { index: self.scopes.take(), number: kernel.scopes.get() }
    }

    /// Makes the index of a closed scope free again.
    #[inline]
    pub fn free_scope(&self, index: u32) {
        self.scopes.free(index);
    }

    /// Makes the index of a handle that is gone free again.
    pub fn free_handle(&self, index: u32) {
        self.handles.free(index);
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("epoch", &self.epoch.get()).finish_non_exhaustive()
    }
}
