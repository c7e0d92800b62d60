//! Yours: a future that yields a number of times.

use std::future::poll_fn;
use std::task::Poll;

/// Yields `times` times, and is then ready.
pub fn give_way(times: u32) -> impl Future<Output = ()> {
    let mut turns = 0..times;
    poll_fn(move |cx| match turns.next() {
        None => Poll::Ready(()),
        Some(turn) => {
            println!("turn {turn} of {times}");
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
}
