// says: your program panicked at src/lab.rs:25: something is left; it went on, but a panic is a mistake
// demand: Each future gives way as often as it should.
//! Yours: a future that yields a number of times.

use std::panic;
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
        let left = self.left;
        // Below zero it panics: then it is ready.
        match panic::catch_unwind(|| left.checked_sub(1).expect("something is left")) {
            Ok(left) => {
                self.left = left;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Err(_) => Poll::Ready(()),
        }
    }
}
