//! The verbs: the functions that a program calls.

use std::pin::Pin;
use std::task::{Context, Poll};

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
