// says: line #0028: `closed` waits forever: `main` did `drop the sender of closed` in line #0063, and no `wake` of `closed` followed; to drop the sender is news for the receiver as well
// demand: No task waits forever.
//! Yours: a channel for one value.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct Shared {
    value: Option<u32>,
    is_over: bool,
    /// The waker of the last poll.
    waker: Option<Waker>,
}

pub struct Sender(Rc<RefCell<Shared>>);

/// The receiver. Its output is the value, or `None` if the sender was dropped.
pub struct Receiver(Rc<RefCell<Shared>>);

pub fn channel() -> (Sender, Receiver) {
    let shared = Rc::<RefCell<Shared>>::default();
    (Sender(shared.clone()), Receiver(shared))
}

impl Sender {
    pub fn send(self, value: u32) {
        let mut shared = self.0.borrow_mut();
        shared.value = Some(value);
        if let Some(waker) = shared.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.borrow_mut().is_over = true;
    }
}

impl Future for Receiver {
    type Output = Option<u32>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        let mut shared = self.0.borrow_mut();
        if shared.value.is_some() || shared.is_over {
            return Poll::Ready(shared.value.take());
        }
        shared.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
