//! Yours: a channel for one value. No `sleep` and no kernel is needed here.

use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct Shared {
    value: Option<u32>,
    waker: Option<Waker>,
}

pub struct Sender(Weak<Mutex<Shared>>);

/// The receiver. Its output is the value, or `None` if the sender was dropped.
pub struct Receiver {
    shared: Arc<Mutex<Shared>>,
}

pub fn channel() -> (Sender, Receiver) {
    let shared = Arc::<Mutex<Shared>>::default();
    (Sender(Arc::downgrade(&shared)), Receiver { shared })
}

impl Sender {
    pub fn send(self, value: u32) {
        if let Some(shared) = self.0.upgrade() {
            shared.lock().unwrap().value = Some(value);
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let Some(shared) = self.0.upgrade() else { return };
        // From here the receiver sees that the sender is gone.
        self.0 = Weak::new();
        let waker = shared.lock().unwrap().waker.take();
        drop(shared);
        waker.iter().for_each(Waker::wake_by_ref);
    }
}

impl Future for Receiver {
    type Output = Option<u32>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        let is_over = Arc::weak_count(&self.shared) == 0;
        let mut shared = self.shared.lock().unwrap();
        match shared.value.take() {
            Some(value) => Poll::Ready(Some(value)),
            None if is_over => Poll::Ready(None),
            None => {
                match &mut shared.waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    empty => *empty = Some(cx.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}
