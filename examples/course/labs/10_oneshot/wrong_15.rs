// says: line #3194: `closed` waits forever: `main` did `drop the sender of closed` in line #3198, and no `wake` of `closed` followed; to drop the sender is news for the receiver as well
// demand: No task waits forever.
//! A drop without a value wakes only a receiver that was polled once.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct Shared {
    value: Option<u32>,
    is_over: bool,
    polls: u32,
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
        self.0.borrow_mut().value = Some(value);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut shared = self.0.borrow_mut();
        shared.is_over = true;
        if (shared.value.is_some() || shared.polls == 1)
            && let Some(waker) = shared.waker.take()
        {
            waker.wake();
        }
    }
}

impl Future for Receiver {
    type Output = Option<u32>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        let mut shared = self.0.borrow_mut();
        shared.polls += 1;
        if shared.value.is_some() || shared.is_over {
            return Poll::Ready(shared.value.take());
        }
        shared.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
