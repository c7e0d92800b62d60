//! The scheduling queue: where tasks wait in line for each other, and what locks are built on.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::core::call::Call;
use crate::core::gate;
use crate::core::interrupt::Interrupt;
use crate::core::names::{Site, TaskRef};
use crate::core::posting;
use crate::core::protocol::{Post, Reply, Trap};
use crate::core::queue::{Primitive, Queue};
use crate::limits::HOLDERS;

/// A first-in, first-out line of waiting tasks.
///
/// Cheap to clone; clones are the same line. Belongs to one thread, and while somebody waits in it
/// to one kernel.
///
/// # Panics
///
/// A [`wait`](WaitQueue::wait) or a [`wait_for_permit`](WaitQueue::wait_for_permit)
/// that is awaited in one kernel while tasks of another one wait in it.
#[derive(Clone, Default)]
pub struct WaitQueue(Rc<Queue>);

impl fmt::Debug for WaitQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.primitive.get().map(|it| &it.name);
        f.debug_struct("WaitQueue").field("name", &name).field("waiting", &self.waiting()).finish()
    }
}

impl WaitQueue {
    /// An empty line.
    pub fn new() -> WaitQueue {
        WaitQueue::with_permits(0)
    }

    /// An empty line with permits for [`WaitQueue::try_take_permit`]. It keeps `u32::MAX` of them
    /// at most.
    pub fn with_permits(permits: u32) -> WaitQueue {
        WaitQueue(Rc::new(Queue { permits: Cell::new(permits), ..Queue::default() }))
    }

    /// Says what the line is to its users: its kind in one word, such as `mutex`, and its name,
    /// which may be empty. The log and the table of tasks show both. A line is described once,
    /// before tasks wait in it.
    pub fn described(self, kind: &'static str, name: impl Into<Cow<'static, str>>) -> WaitQueue {
        let primitive = Primitive { kind, name: name.into(), holders: RefCell::default() };
        let _ = self.0.primitive.set(Box::new(primitive));
        self
    }

    /// Notes for the log that the running task has taken what the waiters want. Only in a line that
    /// is [described](WaitQueue::described), and of 64 tasks at most. Gives what
    /// [`WaitQueue::release`] takes.
    pub fn hold(&self) -> Option<TaskRef> {
        let task = gate::task()?;
        let mut holders = self.0.primitive.get()?.holders.borrow_mut();
        let is_noted = holders.len() < HOLDERS;
        is_noted.then(|| holders.push(task))?;
        Some(task)
    }

    /// Takes a [`WaitQueue::hold`] back. May be called in a `Drop`, and by any task.
    pub fn release(&self, holder: Option<TaskRef>) {
        let Some(primitive) = self.0.primitive.get() else { return };
        let mut holders = primitive.holders.borrow_mut();
        if let Some(place) = holders.iter().position(|task| Some(*task) == holder) {
            holders.remove(place);
        }
    }

    /// Notes those tasks in place of all that were noted by [`WaitQueue::hold`].
    pub(crate) fn held_by(&self, tasks: impl Iterator<Item = TaskRef>) {
        if let Some(primitive) = self.0.primitive.get() {
            let mut holders = primitive.holders.borrow_mut();
            holders.clear();
            holders.extend(tasks);
        }
    }

    /// Waits at the tail until woken. *Blocks*, unless a permit is kept, which it takes. Can be
    /// interrupted; a wake that was handed to a wait whose future is then dropped passes to the
    /// next in line.
    #[track_caller]
    pub fn wait(&self) -> Wait {
        self.wait_from(Location::caller())
    }

    /// [`WaitQueue::wait`], for a wrapper that knows its own caller's place in the source.
    pub fn wait_from(&self, site: Site) -> Wait {
        Wait::new(self.0.clone(), false, site)
    }

    /// Waits at the tail for a permit, which is kept if the future is dropped with it.
    #[track_caller]
    pub fn wait_for_permit(&self) -> Wait {
        self.wait_for_permit_from(Location::caller())
    }

    /// [`WaitQueue::wait_for_permit`], for a wrapper that knows its own caller's place in the
    /// source.
    pub fn wait_for_permit_from(&self, site: Site) -> Wait {
        Wait::new(self.0.clone(), true, site)
    }

    /// Wakes at most `n` waiters, from the head, when the task next traps or parks. *A post*: it
    /// may be made in a `Drop`.
    pub fn wake(&self, n: u64) {
        // Even if nobody waits yet: a wait may have been filed in this very poll.
        posting::post(Post::Wake(self.0.clone(), n));
    }

    /// Hands a permit to the first waiter, or keeps it; may be called in a `Drop`.
    pub fn give_permit(&self) {
        // A wait that the kernel has not seen yet finds the permit when it is seen.
        if self.0.len.get() == 0 {
            self.0.keep_permit();
        } else {
            posting::post(Post::Permit(self.0.clone(), true));
        }
    }

    /// [`WaitQueue::give_permit`], `n` times.
    pub fn give_permits(&self, n: u32) {
        let handed = n.min(u32::try_from(self.0.len.get()).unwrap_or(u32::MAX));
        (0..handed).for_each(|_| self.give_permit());
        self.0.permits.set(self.0.permits.get().saturating_add(n - handed));
    }

    /// How many permits are kept now.
    pub fn permits(&self) -> u32 {
        self.0.permits.get()
    }

    /// Takes a permit if one is free and nobody waits for it.
    #[must_use]
    pub fn try_take_permit(&self) -> bool {
        self.0.take_permit()
    }

    /// How many wait now.
    pub fn waiting(&self) -> usize {
        usize::try_from(self.0.len.get()).unwrap_or(usize::MAX)
    }
}

/// The future of [`WaitQueue::wait`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct Wait {
    queue: Rc<Queue>,
    /// Whether what it was handed is kept if nobody else waits.
    keep: bool,
    call: Call,
}

impl Wait {
    pub(crate) fn new(queue: Rc<Queue>, keep: bool, site: Site) -> Wait {
        Wait { queue, keep, call: Call::from(site) }
    }
}

impl Future for Wait {
    type Output = Result<(), Interrupt>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Wait { queue, keep, call } = &mut *self;
        let trap = || {
            assert_here(queue);
            Trap::Wait { queue: queue.clone(), keep: *keep }
        };
        call.poll(cx, trap).map(Reply::done)
    }
}

fn assert_here(queue: &Queue) {
    let here = queue.len.get() == 0 || queue.home.get() == gate::epoch();
    assert!(here, "rule: a queue in which tasks of one kernel wait is not used in another");
}
