//! The runtime that hyper asks for: streams, a timer, an executor.

use std::error::Error as _;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use ::hyper::rt::{Executor, Read, ReadBufCursor, Sleep, Timer, Write};
use send_wrapper::SendWrapper;
use traps::io::Direction;
use traps::{Interruptible, Shield, shield, sleep, spawn};

use super::{Compat, Polled, TwoWay};

impl<S: TwoWay> Read for Compat<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Polled<()> {
        // Without unsafe code a cursor takes only what is copied into it.
        let mut piece = [0; 8 * 1024];
        let most = buf.remaining().min(piece.len());
        let n = ready!(self.poll(Direction::Read, cx, |stream| stream.take(&mut piece[..most])))?;
        buf.put_slice(&piece[..n]);
        Poll::Ready(Ok(()))
    }
}

impl<S: TwoWay> Write for Compat<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Polled<usize> {
        self.poll(Direction::Write, cx, |stream| stream.put(buf))
    }

    /// Nothing is held back here.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled<()> {
        Poll::Ready(Ok(()))
    }

    /// Says that nothing more will be written.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled<()> {
        self.poll_end()
    }
}

/// hyper's timer, on the kernel clock. Its sleeps *block* the task that polls them.
///
/// A sleep has no error by which it could end early, so interrupts pass it by: they end the other
/// waits of the task, as those for the connection, and stay pending if there is none.
///
/// A span counts from the first poll of the sleep. hyper gives points of the system's clock, so a
/// virtual clock sleeps up to them less the time that really passed before that.
///
/// hyper demands that a sleep can be sent to another thread, which a trap cannot.
///
/// # Panics
///
/// A sleep panics if it is polled or dropped on another thread than the one that made it, and if it
/// is polled outside a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelTimer;

impl Timer for KernelTimer {
    fn sleep(&self, span: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(KernelSleep(SendWrapper::new(shield(sleep(span)))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(deadline.saturating_duration_since(Instant::now()))
    }
}

/// A sleep of hyper's, to which other threads have no way.
struct KernelSleep(SendWrapper<Shield<traps::Sleep>>);

impl Sleep for KernelSleep {}

impl Future for KernelSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Nothing reaches it behind its shield, so it has slept.
        Pin::new(&mut *self.0).poll(cx).map(drop)
    }
}

/// hyper's executor: runs each future as a task of its own, named `hyper`, which nobody joins.
///
/// # Panics
///
/// Outside a task, which cannot spawn.
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

/// hyper's error as an `io::Error`, for a scope around a connection: one that an interrupt caused
/// carries that [`Interrupt`](traps::Interrupt), any other carries hyper's error.
///
/// An interrupt always ends a connection. Where no request is under way, hyper's server takes it
/// for the end of the stream, and the connection ends without an error.
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
