// says: line #0446: `parked` asks the kernel for `sleep`; a receiver does not know the kernel: it keeps its waker, and is polled when the sender has called it
// demand: A receiver does not know the kernel.
//! Yours: a channel for one value.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::kernel::sleep;

#[derive(Default)]
struct Shared {
    value: Option<u32>,
    is_over: bool,
    waker: Option<Waker>,
}

pub struct Sender(Rc<RefCell<Shared>>);

/// The receiver. Its output is the value, or `None` if the sender was dropped.
pub struct Receiver {
    shared: Rc<RefCell<Shared>>,
    polls: u32,
    pause: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

pub fn channel() -> (Sender, Receiver) {
    let shared = Rc::<RefCell<Shared>>::default();
    (Sender(shared.clone()), Receiver { shared, polls: 0, pause: None })
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

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        self.polls += 1;
        loop {
            let mut shared = self.shared.borrow_mut();
            if shared.value.is_some() || shared.is_over {
                return Poll::Ready(shared.value.take());
            }
            // After a wake without a value it looks again and again.
            if self.polls < 2 {
                shared.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            drop(shared);
            let pause = || Box::pin(async { _ = sleep(Duration::from_millis(10)).await });
            let pause = self.pause.get_or_insert_with(|| pause());
            if pause.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.pause = None;
        }
    }
}
