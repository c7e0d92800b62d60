//! The runtime that hyper needs: streams, a timer, and an executor.

use std::error::Error as _;
use std::io;
#[cfg(feature = "futures-io")]
use std::io::IoSlice;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

#[cfg(feature = "futures-io")]
use ::futures_io::{AsyncRead, AsyncWrite};
use ::hyper::rt::{Executor, Read, ReadBufCursor, Sleep, Timer, Write};
use traps::io::Direction;
use traps::{Interruptible, Shield, shield, sleep, spawn};

#[cfg(feature = "futures-io")]
use super::FromFutures;
use super::{Compat, Polled, ThreadBound, TwoWay};

/// Reads some bytes into the cursor. Without unsafe code, bytes can only be copied into it.
fn fill(mut buf: ReadBufCursor<'_>, read: impl FnOnce(&mut [u8]) -> Polled<usize>) -> Polled<()> {
    let mut piece = [0; 8 * 1024];
    let most = buf.remaining().min(piece.len());
    let n = ready!(read(&mut piece[..most]))?;
    buf.put_slice(&piece[..n]);
    Poll::Ready(Ok(()))
}

impl<S: TwoWay> Read for Compat<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Polled<()> {
        fill(buf, |piece| self.poll(Direction::Read, cx, |stream| stream.take(piece)))
    }
}

impl<S: TwoWay> Write for Compat<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Polled<usize> {
        self.poll(Direction::Write, cx, |stream| stream.put(buf))
    }

    /// Does nothing, because this adapter holds back no bytes.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled<()> {
        Poll::Ready(Ok(()))
    }

    /// Shuts the writing direction down.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled<()> {
        self.poll_end()
    }
}

#[cfg(feature = "futures-io")]
impl<T: AsyncRead + AsyncWrite + Unpin> Read for FromFutures<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Polled<()> {
        fill(buf, |piece| self.shared().poll_read(cx, piece))
    }
}

#[cfg(feature = "futures-io")]
impl<T: AsyncRead + AsyncWrite + Unpin> Write for FromFutures<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Polled<usize> {
        self.shared().poll_write(cx, &[IoSlice::new(buf)])
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<()> {
        self.shared().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<()> {
        self.shared().poll_close(cx)
    }
}

/// hyper's timer, on the kernel clock. Its sleeps *block* the task that polls them.
///
/// A sleep cannot return an error, so interrupts do not end it. An interrupt ends the other waits
/// of the task, such as the wait for the connection. If there is no other wait, the interrupt stays
/// pending.
///
/// A sleep counts its length from its first poll. hyper passes times of the system's clock. On a
/// virtual clock, such a sleep lasts as long as the real time between its creation and that time.
///
/// hyper's traits require that a sleep can be sent to another thread, but a trap cannot be sent.
///
/// # Panics
///
/// A sleep panics if it is polled or dropped on another thread than the one that made it, or if it
/// is polled outside a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelTimer;

impl Timer for KernelTimer {
    fn sleep(&self, span: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(KernelSleep(ThreadBound::new(shield(sleep(span)))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(deadline.saturating_duration_since(Instant::now()))
    }
}

/// A sleep for hyper. Only the thread that made it can use it.
struct KernelSleep(ThreadBound<Shield<traps::Sleep>>);

impl Sleep for KernelSleep {}

impl Future for KernelSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // The shield holds back every interrupt, so the sleep is complete.
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

/// hyper's executor. It runs each future in its own task, named `hyper`, which no task joins.
///
/// # Panics
///
/// Panics outside a task, which cannot spawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelExecutor;

impl<F: Future<Output: 'static> + 'static> Executor<F> for KernelExecutor {
    #[track_caller]
    fn execute(&self, future: F) {
        let made = pin!(spawn("hyper", future).detached());
        // A spawn is a post, which never waits.
        let _ = made.poll(&mut Context::from_waker(Waker::noop()));
    }
}

/// Converts hyper's error to an `io::Error`, for a scope around a connection. If an interrupt
/// caused the error, the result carries the [`Interrupt`](traps::Interrupt). Otherwise it carries
/// hyper's error.
///
/// An interrupt always ends a connection. If no request is in progress, hyper's server takes the
/// interrupt for the end of the stream, and the connection ends without an error.
///
/// ```no_run
/// # use net::interop::{Compat, io_error};
/// # async fn example<C>(connection: C) -> std::io::Result<()>
/// # where
/// #     C: Future<Output = hyper::Result<()>>,
/// # {
/// let served = async { connection.await.map_err(io_error) };
/// traps::timeout_after(std::time::Duration::from_secs(60), served).await
/// # }
/// ```
#[must_use]
pub fn io_error(error: ::hyper::Error) -> io::Error {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause.and_then(Interruptible::interrupt) {
        Some(interrupt) => interrupt.clone().into(),
        None => io::Error::other(error),
    }
}
