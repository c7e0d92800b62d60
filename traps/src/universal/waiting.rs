//! A put or a get under way, and how a task and a thread wait for it: the same steps on both sides.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
#[cfg(not(all(test, loom)))]
use std::thread;
use std::time::{Duration, Instant};

use super::line::{Ended, Operation, Shared, Waiter};
use crate::combine::Either;
use crate::core::filing;
use crate::core::gate;
use crate::core::interrupt::Interrupt;
use crate::core::protocol::{Act, Parked};
use crate::error::Error;
use crate::outside::Wait;
use crate::verbs::{Budget, budget};

/// A task's wait for an operation on a queue of `T`: a [`Put`](super::Put), a [`Get`](super::Get)
/// or a [`WaitEvent`](super::WaitEvent).
///
/// Dropped while it waits, it leaves the line as if it had never been in it.
#[must_use = "futures do nothing unless awaited"]
pub struct Waiting<T, R> {
    queue: Arc<Shared<T>>,
    operation: Operation<T>,
    /// `None` once it was granted.
    budget: Option<Budget>,
    wait: Wait,
    output: Output<T, R>,
}

/// Makes the output from what the operation has and how it ended.
pub(super) type Output<T, R> = fn(Option<T>, Ended) -> R;

impl<T, R> Waiting<T, R> {
    #[track_caller]
    pub(super) fn new(
        what: Act,
        queue: &Arc<Shared<T>>,
        operation: Operation<T>,
        output: Output<T, R>,
    ) -> Waiting<T, R> {
        let (budget, wait) = (Some(budget()), Wait::here(Parked::Universal(what, queue.1)));
        Waiting { queue: queue.clone(), operation, budget, wait, output }
    }

    /// A real thread will end the wait: a virtual clock stands still until one does.
    pub fn external(mut self) -> Waiting<T, R> {
        self.wait.external = true;
        if let Parked::Universal(act, _) = self.wait.what {
            self.wait.what = Parked::Outside(act.word());
        }
        self
    }

    /// `Err`: the wait was interrupted.
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Result<Ended, Interrupt>> {
        let Waiting { queue, operation, budget, wait, .. } = self;
        if let Some(asked) = budget {
            // A queue that other threads fill is as bad as a socket: it may never be empty.
            ready!(Pin::new(asked).poll(cx))?;
            *budget = None;
            if let Some(ended) = operation.advance(queue, None) {
                return Poll::Ready(Ok(ended));
            }
        }
        let stand_in_line = |waker| operation.advance(queue, Some(Waiter::Task(waker)));
        Poll::Ready(match ready!(wait.poll(cx, stand_in_line)) {
            Either::Left(ended) => Ok(ended),
            Either::Right(woken) => woken.map(|()| {
                let ended = operation.advance(queue, None);
                ended.expect("rule: whoever is woken finds what it waited for")
            }),
        })
    }
}

impl<T, R> fmt::Debug for Waiting<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("wait", &self.wait).finish_non_exhaustive()
    }
}

impl<T, R> Unpin for Waiting<T, R> {}

impl<T, R> Future for Waiting<T, R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        let ended = ready!(self.poll_ended(cx));
        let Waiting { queue, operation, output, .. } = &mut *self;
        let ended = ended.unwrap_or_else(|interrupt| {
            let ended = operation.give_up(queue, Error::Interrupt(interrupt.clone()));
            if ended.is_ok() {
                // The operation is done, so this is for the task's next blocking trap.
                filing::unread(&interrupt);
            }
            ended
        });
        Poll::Ready(output(operation.item.take(), ended))
    }
}

impl<T, R> Drop for Waiting<T, R> {
    fn drop(&mut self) {
        self.wait.abandon();
        self.operation.leave(&self.queue, false);
    }
}

/// Does an operation on this thread, which waits for it no longer than `span`.
///
/// # Panics
///
/// Inside a task, and where a kernel would have to wait.
pub(super) fn block<T, R>(
    queue: &Shared<T>,
    mut operation: Operation<T>,
    output: Output<T, R>,
    span: Option<Duration>,
) -> R {
    let rule = "rule: a task does not block its kernel's thread; await the operation";
    assert!(gate::task().is_none(), "{rule}");
    let mut ended = operation.advance(queue, None);
    if ended.is_none() {
        let rule =
            "rule: a thread does not block while a kernel runs on it, which may have to wake it";
        assert!(gate::epoch() == 0, "{rule}");
        ended = operation.advance(queue, Some(Waiter::Thread(thread::current())));
    }
    let deadline = span.and_then(|span| Instant::now().checked_add(span));
    let mut in_time = true;
    while ended.is_none() && in_time {
        in_time = park(deadline);
        ended = operation.advance(queue, None);
    }
    let ended = ended.unwrap_or_else(|| operation.give_up(queue, Error::TimedOut));
    output(operation.item, ended)
}

/// Parks this thread, at most until `deadline`; whether that has not come. May return early.
#[cfg(not(all(test, loom)))]
fn park(deadline: Option<Instant>) -> bool {
    match deadline {
        None => thread::park(),
        Some(deadline) => {
            thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
        }
    }
    deadline.is_none_or(|deadline| Instant::now() < deadline)
}

#[cfg(all(test, loom))]
use super::model_tests::{park, thread};
