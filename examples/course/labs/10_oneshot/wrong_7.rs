// says: your program panicked at src/kernel/gate.rs:62: rule: a poll makes one request
// demand: A receiver does not know the kernel.
//! Yours: a channel for one value.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::kernel::sleep;

#[derive(Default)]
struct Shared {
    value: Option<u32>,
    is_over: bool,
}

pub struct Sender(Rc<RefCell<Shared>>);

/// Its output is the value, or `None` if the sender was dropped.
pub struct Receiver {
    shared: Rc<RefCell<Shared>>,
    pause: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

pub fn channel() -> (Sender, Receiver) {
    let shared = Rc::<RefCell<Shared>>::default();
    (Sender(shared.clone()), Receiver { shared, pause: None })
}

impl Sender {
    pub fn send(self, value: u32) {
        self.0.borrow_mut().value = Some(value);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.borrow_mut().is_over = true;
    }
}

impl Future for Receiver {
    type Output = Option<u32>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        loop {
            let mut shared = self.shared.borrow_mut();
            if shared.value.is_some() || shared.is_over {
                return Poll::Ready(shared.value.take());
            }
            drop(shared);
            // Looks again after a while.
            let pause = || Box::pin(async { _ = sleep(Duration::from_millis(10)).await });
            let pause = self.pause.get_or_insert_with(|| pause());
            if pause.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.pause = None;
        }
    }
}
