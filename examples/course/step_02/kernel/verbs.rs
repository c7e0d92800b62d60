//! The verbs: the functions that a program calls.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::*;

/// Yields to every task that is ready now.
pub fn yield_now() -> impl Future<Output = ()> {
    Yield { has_yielded: false }
}

struct Yield {
    has_yielded: bool,
}

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_yielded {
            return Poll::Ready(());
        }
        self.has_yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Waits until `span` has passed, and returns the time.
pub fn sleep(span: Duration) -> impl Future<Output = Time> {
    Sleep { span, until: None }
}

struct Sleep {
    span: Duration,
    /// Set by the first poll.
    until: Option<Time>,
}

impl Future for Sleep {
    type Output = Time;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Time> {
        TIMERS.with_borrow_mut(|timers| match self.until {
            Some(until) if until <= timers.now => Poll::Ready(timers.now),
            // The task was woken for another reason, so it waits on.
            Some(_) => Poll::Pending,
            None => {
                let until = timers.now + self.span;
                self.until = Some(until);
                timers.set(until, cx.waker().clone());
                Poll::Pending
            }
        })
    }
}
