//! The scheduling queue: where tasks wait in line for each other, and what locks are built on.

use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::call::Call;
use crate::error::only_interrupt;
use crate::gate;
use crate::interrupt::Interrupt;
use crate::protocol::{Answer, Post, QueueCore, Request, Site, Ticket};

/// A first-in, first-out line of waiting tasks.
///
/// Cheap to clone; clones are the same line. Belongs to one thread, and while somebody waits in it
/// to one kernel. A wait that was woken there may be read in another one; if that kernel is dropped
/// first, the wake or the permit that was handed over goes with it.
///
/// # Panics
///
/// A [`wait`](WaitQueue::wait), a [`wait_for_permit`](WaitQueue::wait_for_permit) or a
/// [`wake`](WaitQueue::wake) that is awaited in one kernel while tasks of another one wait in it.
#[derive(Clone, Debug)]
pub struct WaitQueue(Rc<QueueCore>);

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

    /// An empty line with so many permits for [`WaitQueue::try_take_permit`]. It keeps `u32::MAX`
    /// of them at most.
    #[must_use]
    pub fn with_permits(permits: u32) -> WaitQueue {
        WaitQueue(Rc::new(QueueCore::new(permits)))
    }

    /// Waits at the tail until woken. Blocks, unless a permit is kept, which it takes. Can be
    /// interrupted; a wake that was handed to a wait whose future is then dropped passes to the
    /// next in line.
    #[track_caller]
    pub fn wait(&self) -> Wait {
        self.wait_at(Location::caller())
    }

    /// [`WaitQueue::wait`], for a wrapper that knows its own caller's place in the source.
    pub fn wait_at(&self, site: Site) -> Wait {
        Wait { queue: self.0.clone(), keep: false, call: Call::at(site) }
    }

    /// Waits at the tail for a permit, which is kept if the future is dropped with it.
    #[track_caller]
    pub fn wait_for_permit(&self) -> Wait {
        self.wait_for_permit_at(Location::caller())
    }

    /// [`WaitQueue::wait_for_permit`], for a wrapper that knows its own caller's place in the
    /// source.
    pub fn wait_for_permit_at(&self, site: Site) -> Wait {
        Wait { queue: self.0.clone(), keep: true, call: Call::at(site) }
    }

    /// Wakes at most `n` waiters, from the head. Answers with how many.
    #[track_caller]
    pub fn wake(&self, n: u64) -> Wake {
        Wake { queue: self.0.clone(), n, call: Call::here() }
    }

    /// Wakes at most `n` waiters when the task next traps or parks; may be called in a `Drop`.
    pub fn wake_soon(&self, n: u64) {
        // Also where nobody waits yet: a wait may have been filed in this very poll.
        gate::post(Post::Wake { queue: self.0.clone(), n });
    }

    /// Hands a permit to the first waiter, or keeps it; may be called in a `Drop`.
    pub fn give_permit(&self) {
        // A wait that the kernel has not seen yet finds the permit when it is seen.
        if self.0.waiting.get() == 0 {
            self.0.keep_permit();
        } else {
            gate::post(Post::Permit { queue: self.0.clone(), keep: true });
        }
    }

    /// Takes a permit if one is free and nobody waits for it.
    #[must_use]
    pub fn try_take_permit(&self) -> bool {
        let free = self.0.permits.get();
        if free > 0 {
            self.0.permits.set(free - 1);
        }
        free > 0
    }

    /// The line itself.
    pub(crate) fn core(&self) -> &Rc<QueueCore> {
        &self.0
    }

    /// How many wait now.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.0.waiting.get()
    }
}

/// Whether it is of another kernel than the one that runs.
#[inline]
fn is_elsewhere(ticket: Ticket) -> bool {
    let running = gate::epoch();
    ticket.epoch != running && running != 0
}

/// Its line is of tickets of one kernel.
fn assert_here(queue: &QueueCore) {
    let home = queue.home.get();
    assert!(
        home == 0 || home == gate::epoch() || queue.waiting.get() == 0,
        "rule: a queue in which tasks of one kernel wait is not waited on, or woken, in another"
    );
}

/// The future of [`WaitQueue::wait`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct Wait {
    queue: Rc<QueueCore>,
    keep: bool,
    call: Call,
}

impl Wait {
    /// Whether it is a wait in that queue.
    pub(crate) fn is_in(&self, queue: &WaitQueue) -> bool {
        Rc::ptr_eq(&self.queue, &queue.0)
    }
}

impl Future for Wait {
    type Output = Result<(), Interrupt>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Wait { queue, call, .. } = &mut *self;
        if call.ticket().is_some_and(is_elsewhere) && matches!(call.abandon(), Some(Ok(_))) {
            // It was woken where it was filed, and has yet to read that.
            return Poll::Ready(Ok(()));
        }
        let request = || {
            assert_here(queue);
            Request::Wait { queue: queue.clone() }
        };
        call.poll_done(cx, request).map_err(only_interrupt)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(Ok(_)) = self.call.abandon() {
            gate::post(Post::Permit { queue: self.queue.clone(), keep: self.keep });
        }
    }
}

/// The future of [`WaitQueue::wake`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct Wake {
    queue: Rc<QueueCore>,
    n: u64,
    call: Call,
}

impl Future for Wake {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u64> {
        let Wake { queue, n, call } = &mut *self;
        assert_here(queue);
        call.poll(cx, || Request::Wake { queue: queue.clone(), n: *n }).map(|result| match result {
            Ok(Answer::Count(n)) => n,
            other => unreachable!("rule: a wake is answered with a count, not {other:?}"),
        })
    }
}
