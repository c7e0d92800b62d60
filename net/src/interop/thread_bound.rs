//! Values that are `Send` although they must stay on one thread.

use std::any::type_name;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

#[cfg(feature = "tokio-io")]
use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use send_wrapper::SendWrapper;

#[cfg(feature = "tokio-io")]
use super::Polled;

/// A value that is `Send` and `Sync`, for libraries that demand this of a stream, a future or their
/// state. Only the thread that made the wrapper can use the value.
///
/// Those libraries are written for runtimes that move tasks between threads. A kernel does not, so
/// here the demand costs a comparison of thread ids at each use, and nothing else.
///
/// A future has to be pinned first: `ThreadBound::new(Box::pin(future))`. With the feature
/// `tokio-io`, a wrapped [`Compat`](super::Compat) has tokio's traits too.
///
/// # Panics
///
/// Panics if another thread uses, polls or drops it. Then the value is never dropped.
///
/// ```
/// use net::interop::ThreadBound;
///
/// fn takes(_: impl Future<Output = ()> + Send) {}
/// takes(ThreadBound::new(Box::pin(async {
///     let _ = traps::sleep(std::time::Duration::from_secs(1)).await;
/// })));
/// ```
pub struct ThreadBound<T>(SendWrapper<T>);

impl<T> ThreadBound<T> {
    /// Wraps a value of this thread.
    pub fn new(value: T) -> ThreadBound<T> {
        ThreadBound(SendWrapper::new(value))
    }

    #[track_caller]
    fn check(&self) {
        let name = type_name::<T>();
        assert!(self.0.valid(), "rule: ThreadBound<{name}> stays on the thread that made it");
    }
}

impl<T> Drop for ThreadBound<T> {
    fn drop(&mut self) {
        // A second panic would end the process.
        if !thread::panicking() {
            self.check();
        }
    }
}

impl<T> Deref for ThreadBound<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.check();
        &self.0
    }
}

impl<T> DerefMut for ThreadBound<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.check();
        &mut self.0
    }
}

impl<T> fmt::Debug for ThreadBound<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadBound").finish_non_exhaustive()
    }
}

impl<F: Future + Unpin> Future for ThreadBound<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        Pin::new(&mut **self).poll(cx)
    }
}

#[cfg(feature = "tokio-io")]
impl<S: AsyncRead + Unpin> AsyncRead for ThreadBound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Polled<()> {
        Pin::new(&mut **self).poll_read(cx, buf)
    }
}

#[cfg(feature = "tokio-io")]
impl<S: AsyncWrite + Unpin> AsyncWrite for ThreadBound<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Polled<usize> {
        Pin::new(&mut **self).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<()> {
        Pin::new(&mut **self).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<()> {
        Pin::new(&mut **self).poll_shutdown(cx)
    }
}
