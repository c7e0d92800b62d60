//! A flag that one task waits for, and that any thread can raise. It knows no kernel, only wakers.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

#[derive(Clone, Default)]
pub struct Flag(Arc<Mutex<(bool, Option<Waker>)>>);

impl Flag {
    pub fn raise(&self) {
        let mut flag = self.0.lock().expect("no holder panics");
        flag.0 = true;
        if let Some(waker) = flag.1.take() {
            waker.wake();
        }
    }
}

impl Future for Flag {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut flag = self.0.lock().expect("no holder panics");
        if flag.0 {
            return Poll::Ready(());
        }
        flag.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}
