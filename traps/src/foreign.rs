//! Waiting for a future that knows nothing of traps, in a way that can be interrupted.

use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::core::call::Call;
use crate::core::interrupt::Interrupt;
use crate::core::protocol::{Parked, Reply, Trap};

/// Awaits a future that waits on a waker alone, such as a channel of another library.
///
/// A bare foreign wait has no trap that an interrupt could fail. A timeout around it drops it when
/// the deadline passes, and a cancellation does not reach it. This function files a trap beside the
/// wait, so that both end it in place. *Blocks* while the future pends.
#[track_caller]
pub fn foreign<F: Future>(future: F) -> Foreign<F> {
    Foreign { future, external: false, call: Call::here() }
}

pin_project! {
    /// The future of [`foreign`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Foreign<F> {
        #[pin]
        future: F,
        external: bool,
        call: Call,
    }
}

impl<F> Foreign<F> {
    /// Something outside the kernel will wake it: a virtual clock stands still until it does.
    pub fn external(mut self) -> Foreign<F> {
        self.external = true;
        self
    }
}

impl<F: Future> Future for Foreign<F> {
    type Output = Result<F::Output, Interrupt>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(value) = this.future.poll(cx) {
            this.call.abandon();
            return Poll::Ready(Ok(value));
        }
        let external = *this.external;
        let trap = || Trap::Park { what: Parked::Foreign, external };
        this.call.poll(cx, trap).map(|reply| match reply {
            Reply::Interrupt(interrupt) => Err(interrupt),
            other => other.wrong(),
        })
    }
}
