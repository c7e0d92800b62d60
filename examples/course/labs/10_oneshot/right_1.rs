//! Yours: a channel for one value.

use std::cell::RefCell;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What the halves know. It is `Over` with `None` if the sender was dropped.
enum State {
    Open(Option<Waker>),
    Over(Option<u32>),
}

pub struct Sender(Rc<RefCell<State>>);

/// The receiver. Its output is the value, or `None` if the sender was dropped.
pub struct Receiver(Rc<RefCell<State>>);

pub fn channel() -> (Sender, Receiver) {
    let state = Rc::new(RefCell::new(State::Open(None)));
    (Sender(Rc::clone(&state)), Receiver(state))
}

impl Sender {
    pub fn send(self, value: u32) {
        self.end(Some(value));
    }

    /// The first call counts.
    fn end(&self, value: Option<u32>) {
        if let State::Over(_) = *self.0.borrow() {
            return;
        }
        let before = self.0.replace(State::Over(value));
        if let State::Open(Some(waker)) = before {
            waker.wake();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl Future for Receiver {
    type Output = Option<u32>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        match &mut *self.0.borrow_mut() {
            State::Over(value) => Poll::Ready(mem::take(value)),
            State::Open(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
