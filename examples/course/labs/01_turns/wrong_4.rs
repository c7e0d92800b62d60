// says: line 5: `give_way(3)` of task 1 was ready in its first `poll`, and should have given way 3 times; only a `Pending` gives way, so a loop inside of `poll` cannot
// demand: Each future gives way as often as it should.
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
        while self.left > 0 {
            self.left -= 1;
            cx.waker().wake_by_ref();
        }
        Poll::Ready(())
    }
}
