//! Who waits, a task or a thread, and how either does: the same steps on both sides.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

#[cfg(all(test, loom))]
pub(super) use super::model::thread;
#[cfg(all(test, loom))]
pub(super) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(all(test, loom)))]
pub(super) use std::{sync::Mutex, sync::MutexGuard, thread};

use crate::combine::Either;
use crate::gate;
use crate::interrupt::Interrupt;
use crate::outside::{OutsideWaker, Wait};
use crate::protocol::Post;
use crate::verbs::{Budget, budget};

use super::error::QueueError;

/// One who waits, to be woken from any thread.
#[derive(Debug)]
pub(super) enum Waiter {
    Task(OutsideWaker),
    Thread(thread::Thread),
}

impl Waiter {
    pub(super) fn wake(self) {
        match self {
            Waiter::Task(waker) => waker.wake(),
            Waiter::Thread(thread) => thread.unpark(),
        }
    }
}

/// One operation on something shared, as a task and a thread do it alike. None of the steps waits
/// for more than the lock of the thing.
pub(super) trait Operation {
    type Output;

    /// Does it, if that needs no wait.
    fn attempt(&mut self) -> Option<Self::Output>;

    /// Does it after all, or goes to the end of the line; in the line already, is woken through
    /// this waiter from now on.
    fn join(&mut self, waiter: Waiter) -> Option<Self::Output>;

    /// After a wake: the outcome, if there is one.
    fn look(&mut self) -> Option<Self::Output>;

    /// Leaves the line for that reason, which comes back if the operation was done already.
    fn leave(&mut self, why: QueueError) -> (Self::Output, Option<QueueError>);

    /// Leaves the line, if it is in it: nobody wants to know.
    fn forget(&mut self);
}

/// A task's wait for an operation.
#[derive(Debug)]
pub(super) struct TaskWait {
    /// `None` once it was granted.
    budget: Option<Budget>,
    attempted: bool,
    wait: Wait,
}

impl TaskWait {
    #[track_caller]
    pub(super) fn here(what: &'static str) -> TaskWait {
        TaskWait { budget: Some(budget()), attempted: false, wait: Wait::here(what) }
    }

    /// A virtual clock is to stand still meanwhile.
    pub(super) fn external(&mut self) {
        self.wait.external = true;
    }

    pub(super) fn poll<O: Operation>(
        &mut self,
        cx: &mut Context<'_>,
        operation: &mut O,
    ) -> Poll<O::Output> {
        if let Some(budget) = &mut self.budget {
            // A queue that other threads fill is as bad as a socket: it may never be empty.
            let granted = ready!(Pin::new(budget).poll(cx));
            self.budget = None;
            if let Err(interrupt) = granted {
                return Poll::Ready(interrupted(operation, interrupt));
            }
        }
        if !self.attempted {
            self.attempted = true;
            if let Some(output) = operation.attempt() {
                return Poll::Ready(output);
            }
        }
        let join = |waker| operation.join(Waiter::Task(waker));
        Poll::Ready(match ready!(self.wait.poll(cx, join)) {
            Either::Left(output) => output,
            Either::Right(Ok(())) => operation.look().expect("rule: who is woken has an outcome"),
            Either::Right(Err(interrupt)) => interrupted(operation, interrupt),
        })
    }

    /// The future goes.
    pub(super) fn forget<O: Operation>(&mut self, operation: &mut O) {
        self.wait.abandon();
        operation.forget();
    }
}

/// The wait ended early. If the operation was done by then, the interrupt is pending again: a task
/// keeps what it has, and is hit at its next blocking trap.
fn interrupted<O: Operation>(operation: &mut O, interrupt: Interrupt) -> O::Output {
    let (output, unused) = operation.leave(QueueError::Interrupt(interrupt));
    if let Some(QueueError::Interrupt(interrupt)) = unused {
        gate::post(Post::Unread(interrupt));
    }
    output
}

/// Does an operation on this thread, which waits for it until `deadline`.
///
/// # Panics
///
/// Inside a task, and where a kernel would have to wait.
pub(super) fn block<O: Operation>(operation: &mut O, deadline: Option<Instant>) -> O::Output {
    assert!(
        gate::task().is_none(),
        "rule: a task does not block its kernel's thread; await the operation"
    );
    if let Some(output) = operation.attempt() {
        return output;
    }
    assert!(
        gate::epoch() == 0,
        "rule: a thread does not block while a kernel runs on it, which may have to wake it"
    );
    if let Some(output) = operation.join(Waiter::Thread(thread::current())) {
        return output;
    }
    loop {
        let in_time = park(deadline);
        if let Some(output) = operation.look() {
            return output;
        }
        if !in_time {
            return operation.leave(QueueError::TimedOut).0;
        }
    }
}

/// When `span` from now is over; `None` if that is never.
pub(super) fn after(span: Duration) -> Option<Instant> {
    Instant::now().checked_add(span)
}

/// Parks this thread, at most until `deadline`; whether that has not come. May return early.
#[cfg(not(all(test, loom)))]
fn park(deadline: Option<Instant>) -> bool {
    match deadline {
        None => thread::park(),
        Some(deadline) => {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            thread::park_timeout(left);
        }
    }
    true
}

/// In a model a deadline may come at any point; it comes at once, after some other threads.
#[cfg(all(test, loom))]
fn park(deadline: Option<Instant>) -> bool {
    if deadline.is_some() {
        thread::yield_now();
        return false;
    }
    thread::park();
    true
}
