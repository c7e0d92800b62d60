//! Yours: a future that gives way a number of times.

use std::future::poll_fn;
use std::task::Poll;

/// Gives way `times` times; then it is ready.
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
