// says: line 224: `give_way(300)` of task 4 gave way 44 times and was ready in turn 46; it should give way 300 times and be ready in turn 302
// demand: Each future gives way as often as it should.
//! Yours: a future that yields a number of times.

use std::pin::Pin;
use std::task::{Context, Poll};

/// Yields `times` times, and is then ready.
pub fn give_way(times: u32) -> GiveWay {
    // A byte is enough to count turns.
    GiveWay { left: times as u8 }
}

pub struct GiveWay {
    /// The number of times that it must still yield.
    left: u8,
}

impl Future for GiveWay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.left == 0 {
            return Poll::Ready(());
        }
        self.left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
