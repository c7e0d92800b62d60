//! A deadline for each phase, on the timers of the peers that have futures: one timer for a
//! connection, set again for each phase that waits. A phase that is over at once sets nothing, as a
//! careful user of the peer would write it.

use std::future::{Future, pending, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

/// A timer that is set again and again.
pub trait Timer: 'static {
    fn new() -> Self;
    fn set(&mut self, span: Duration);
    /// Ready once it has passed. Polled only while what it limits is not ready.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

/// No deadline at all.
pub struct Never;

impl Timer for Never {
    fn new() -> Never {
        Never
    }
    #[inline]
    fn set(&mut self, _: Duration) {}
    #[inline]
    fn poll(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

/// Runs `work` for at most `span`; `None` if that has passed.
#[inline]
pub async fn under<T: Timer, F: Future>(
    timer: &mut T,
    span: Duration,
    work: F,
) -> Option<F::Output> {
    let mut work = pin!(work);
    let mut is_set = false;
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => {
            if !mem::replace(&mut is_set, true) {
                timer.set(span);
            }
            timer.poll(cx).map(|()| None)
        }
    })
    .await
}

pub struct Tokio(Pin<Box<tokio::time::Sleep>>);

impl Timer for Tokio {
    fn new() -> Tokio {
        Tokio(Box::pin(tokio::time::sleep(Duration::from_secs(60))))
    }
    #[inline]
    fn set(&mut self, span: Duration) {
        self.0.as_mut().reset(tokio::time::Instant::now() + span);
    }
    #[inline]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

pub struct Smol(async_io::Timer);

impl Timer for Smol {
    fn new() -> Smol {
        Smol(async_io::Timer::never())
    }
    #[inline]
    fn set(&mut self, span: Duration) {
        self.0.set_after(span);
    }
    #[inline]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

pub struct Monoio(Pin<Box<monoio::time::Sleep>>);

impl Timer for Monoio {
    fn new() -> Monoio {
        Monoio(Box::pin(monoio::time::sleep(Duration::from_secs(60))))
    }
    #[inline]
    fn set(&mut self, span: Duration) {
        self.0.as_mut().reset(monoio::time::Instant::now() + span);
    }
    #[inline]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

/// compio's timers cannot be set again, so each phase that waits makes one.
pub struct Compio(Pin<Box<dyn Future<Output = ()>>>);

impl Timer for Compio {
    fn new() -> Compio {
        Compio(Box::pin(pending()))
    }
    #[inline]
    fn set(&mut self, span: Duration) {
        self.0 = Box::pin(compio::time::sleep(span));
    }
    #[inline]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}
