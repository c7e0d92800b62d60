// says: line #0034: `heir` waits forever: `main` did `send 4 to heir` in line #0076, and no `wake` of `heir` followed; `moved` had polled the receiver before, and the waker of the last poll counts
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
    /// Of the receiver.
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
        self.0.borrow_mut().value = Some(value);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut shared = self.0.borrow_mut();
        shared.is_over = true;
        if let Some(waker) = shared.waker.take() {
            waker.wake();
        }
    }
}

impl Future for Receiver {
    type Output = Option<u32>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        let mut shared = self.0.borrow_mut();
        if shared.value.is_some() || shared.is_over {
            return Poll::Ready(shared.value.take());
        }
        // One is enough.
        shared.waker.get_or_insert_with(|| cx.waker().clone());
        Poll::Pending
    }
}
