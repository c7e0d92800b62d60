// says: line 7 of src/lab.rs uses `thread`; call the waker in `poll`, before it returns `Pending`: a thread may call it too late
// demand: The `poll` is yours.
//! Yours: a future that yields a number of times.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

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
        if self.left == 0 {
            return Poll::Ready(());
        }
        self.left -= 1;
        let waker = cx.waker().clone();
        thread::spawn(move || waker.wake());
        Poll::Pending
    }
}
