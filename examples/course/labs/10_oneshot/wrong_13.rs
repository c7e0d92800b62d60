// says: your program panicked at src/lab.rs:50: the receiver waits for the sender
// demand: The receiver may be gone.
//! Yours: a channel for one value.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct Shared {
    /// Empty while the sender is there; then what it has sent.
    result: Option<Option<u32>>,
    waker: Option<Waker>,
}

impl Shared {
    fn end(&mut self, value: Option<u32>) {
        self.result = Some(value);
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

pub struct Sender {
    shared: Weak<RefCell<Shared>>,
    has_sent: bool,
}

/// The receiver. Its output is the value, or `None` if the sender was dropped.
pub struct Receiver(Rc<RefCell<Shared>>);

pub fn channel() -> (Sender, Receiver) {
    let shared = Rc::<RefCell<Shared>>::default();
    (Sender { shared: Rc::downgrade(&shared), has_sent: false }, Receiver(shared))
}

impl Sender {
    pub fn send(mut self, value: u32) {
        self.has_sent = true;
        // The receiver may be gone.
        if let Some(shared) = self.shared.upgrade() {
            shared.borrow_mut().end(Some(value));
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if !self.has_sent {
            let shared = self.shared.upgrade().expect("the receiver waits for the sender");
            shared.borrow_mut().end(None);
        }
    }
}

impl Future for Receiver {
    type Output = Option<u32>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        let mut shared = self.0.borrow_mut();
        match shared.result.take() {
            Some(value) => Poll::Ready(value),
            None => {
                shared.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
