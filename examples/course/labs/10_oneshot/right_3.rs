//! Yours: a channel for one value. Who waits is a function to call, and all wakers are kept.

use std::cell::{Cell, OnceCell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct Shared {
    value: Cell<Option<u32>>,
    over: OnceCell<()>,
    /// The wakers of all polls, each task once.
    wakers: RefCell<Vec<Waker>>,
}

pub struct Sender(Rc<Shared>);

/// The receiver. Its output is the value, or `None` if the sender was dropped.
pub struct Receiver(Rc<Shared>);

pub fn channel() -> (Sender, Receiver) {
    let shared = Rc::new(Shared::default());
    (Sender(Rc::clone(&shared)), Receiver(shared))
}

impl Sender {
    pub fn send(self, value: u32) {
        self.0.value.set(Some(value));
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        _ = self.0.over.set(());
        for waker in self.0.wakers.take() {
            waker.wake();
        }
    }
}

impl Future for Receiver {
    type Output = Option<u32>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        let mut wakers = self.0.wakers.borrow_mut();
        match self.0.over.get() {
            Some(()) => return Poll::Ready(self.0.value.take()),
            None if wakers.iter().any(|waker| waker.will_wake(cx.waker())) => {}
            None => wakers.push(cx.waker().clone()),
        }
        Poll::Pending
    }
}
