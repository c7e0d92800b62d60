//! Yours: a channel for one value.

use std::pin::Pin;
use std::task::{Context, Poll};

pub struct Sender {}

/// The receiver. Its output is the value, or `None` if the sender was dropped.
pub struct Receiver {}

pub fn channel() -> (Sender, Receiver) {
    todo!("what the two halves of a channel share")
}

impl Sender {
    pub fn send(self, value: u32) {
        todo!("how the value {value} gets to the receiver")
    }
}

impl Future for Receiver {
    type Output = Option<u32>;

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<u32>> {
        todo!("what the receiver looks at, and what it keeps")
    }
}
