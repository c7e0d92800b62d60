// says: line #0717: `closed` gets `value 110`, and `closed` is right: `main` did `drop the sender of closed` in line #0709; each channel has a value of its own, or none
// demand: Each task gets what is right.
//! Yours: a channel for one value.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

thread_local! {
    // There is one value at a time.
    static VALUE: RefCell<Option<u32>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Shared {
    is_over: bool,
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
        VALUE.set(Some(value));
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
        if shared.is_over {
            return Poll::Ready(VALUE.take());
        }
        shared.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
