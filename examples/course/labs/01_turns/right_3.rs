//! Yours: a future that is made of a future for each time.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Yields `times` times, and is then ready.
pub fn give_way(times: u32) -> GiveWay {
    (0..times).fold(GiveWay::Over, |rest, _| GiveWay::Once(Box::new(rest)))
}

/// Yields once, and continues with the rest.
pub enum GiveWay {
    Once(Box<GiveWay>),
    Over,
}

impl Future for GiveWay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match mem::replace(&mut *self, GiveWay::Over) {
            GiveWay::Once(rest) => *self = *rest,
            GiveWay::Over => return Poll::Ready(()),
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
