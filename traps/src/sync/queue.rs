//! The scheduling queue: where tasks wait in line for each other, and what locks are built on.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::call::{Call, Reply};
use crate::gate;
use crate::interrupt::Interrupt;
use crate::protocol::{Answer, Owned, Post, Request, Site, Ticket};

/// A first-in, first-out line of waiting tasks.
///
/// Cheap to clone; clones are the same line. Belongs to one thread, and while somebody waits in it
/// to one kernel.
///
/// # Panics
///
/// A [`wait`](WaitQueue::wait), a [`wait_for_permit`](WaitQueue::wait_for_permit) or a
/// [`wake`](WaitQueue::wake) that is awaited in one kernel while tasks of another one wait in it.
#[derive(Clone, Debug)]
pub struct WaitQueue(Rc<QueueCore>);

/// A queue as the kernel and its tasks share it: who waits, and permits that nobody waited for.
#[derive(Debug, Default)]
pub struct QueueCore {
    /// The parked waits, first come first. The kernel keeps it.
    pub line: RefCell<VecDeque<Ticket>>,
    /// Permits kept.
    pub permits: Cell<u32>,
    /// Its number in the log; 0 until it is first used there.
    pub number: Cell<u64>,
    /// The kernel that numbered it; 0 for none.
    pub home: Cell<u32>,
}

impl QueueCore {
    /// Forgets who waits: their kernel is gone. Permits stay.
    pub fn reset(&self) {
        self.line.borrow_mut().clear();
        self.home.set(0);
    }

    /// Keeps a permit for the next who comes.
    pub fn keep_permit(&self) {
        self.permits.set(self.permits.get().saturating_add(1));
    }

    /// Takes a permit, if one is kept.
    #[must_use]
    pub fn take_permit(&self) -> bool {
        let left = self.permits.get().checked_sub(1);
        left.map(|left| self.permits.set(left)).is_some()
    }

    fn assert_here(&self) {
        let home = self.home.get();
        let here = home == 0 || home == gate::epoch() || self.line.borrow().is_empty();
        let rule = "rule: a queue in which tasks of one kernel wait is not used in another";
        assert!(here, "{rule}");
    }
}

impl Default for WaitQueue {
    fn default() -> WaitQueue {
        WaitQueue::new()
    }
}

impl WaitQueue {
    /// An empty line.
    #[must_use]
    pub fn new() -> WaitQueue {
        WaitQueue::with_permits(0)
    }

    /// An empty line with permits for [`WaitQueue::try_take_permit`]. It keeps `u32::MAX` of them
    /// at most.
    #[must_use]
    pub fn with_permits(permits: u32) -> WaitQueue {
        WaitQueue(Rc::new(QueueCore { permits: Cell::new(permits), ..QueueCore::default() }))
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
        Wait { queue: self.0.clone(), keep: false, call: Call::from(site) }
    }

    /// Waits at the tail for a permit, which is kept if the future is dropped with it.
    #[track_caller]
    pub fn wait_for_permit(&self) -> Wait {
        self.wait_for_permit_from(Location::caller())
    }

    /// [`WaitQueue::wait_for_permit`], for a wrapper that knows its own caller's place in the
    /// source.
    pub fn wait_for_permit_from(&self, site: Site) -> Wait {
        Wait { queue: self.0.clone(), keep: true, call: Call::from(site) }
    }

    /// Wakes at most `n` waiters, from the head. *Answers* with how many.
    #[track_caller]
    pub fn wake(&self, n: u64) -> impl Future<Output = u64> {
        Wake { queue: self.0.clone(), n, call: Call::here() }
    }

    /// Wakes at most `n` waiters when the task next traps or parks; may be called in a `Drop`.
    pub fn wake_soon(&self, n: u64) {
        // Even if nobody waits yet: a wait may have been filed in this very poll.
        gate::post(Post::Wake { queue: self.0.clone(), n });
    }

    /// Hands a permit to the first waiter, or keeps it; may be called in a `Drop`.
    pub fn give_permit(&self) {
        // A wait that the kernel has not seen yet finds the permit when it is seen.
        if self.0.line.borrow().is_empty() {
            self.0.keep_permit();
        } else {
            gate::post(Post::Permit { queue: self.0.clone(), keep: true });
        }
    }

    /// Takes a permit if one is free and nobody waits for it.
    #[must_use]
    pub fn try_take_permit(&self) -> bool {
        self.0.take_permit()
    }

    /// The line itself.
    pub(crate) fn core(&self) -> &Rc<QueueCore> {
        &self.0
    }

    /// How many wait now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.line.borrow().len()
    }
}

/// The future of [`WaitQueue::wait`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct Wait {
    queue: Rc<QueueCore>,
    /// Whether what it was handed is kept if nobody else waits.
    keep: bool,
    call: Call,
}

impl Future for Wait {
    type Output = Result<(), Interrupt>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Wait { queue, keep, call } = &mut *self;
        let request = || {
            queue.assert_here();
            gate::attach(Owned::Queue(queue.clone()));
            Request::Wait { keep: *keep }
        };
        call.poll(cx, request).map(Reply::done)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if self.call.is_filed()
            && let Some((Answer::Done, _)) = self.call.abandon()
        {
            gate::post(Post::Permit { queue: self.queue.clone(), keep: self.keep });
        }
    }
}

/// The future of [`WaitQueue::wake`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
struct Wake {
    queue: Rc<QueueCore>,
    n: u64,
    call: Call,
}

impl Future for Wake {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u64> {
        let Wake { queue, n, call } = &mut *self;
        let request = || {
            queue.assert_here();
            gate::attach(Owned::Queue(queue.clone()));
            Request::Wake { n: *n }
        };
        call.poll(cx, request).map(|reply| match reply.open() {
            Ok(Answer::Count(n)) => n,
            _ => reply.wrong(),
        })
    }
}
