// says: line 25 of src/lab.rs uses `catch_unwind`; a panic is a mistake, so look at what is left before you count it down
// demand: The `poll` is yours.
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
