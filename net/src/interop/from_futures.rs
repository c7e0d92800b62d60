//! Streams of `futures-io` as streams of this crate.
//!
//! Such a stream may hold bytes back, and cannot report whether there are bytes to read. So each
//! wait to read also sends the bytes that are held back, and a wait without a buffer reads one byte
//! ahead.

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use ::futures_io::{AsyncRead, AsyncWrite};
use traps::Interruptible;
use traps::Site;

use super::{Polled, is_over};
use crate::halves::Split;
use crate::stream::Stream;

/// A stream of another library, for example a TLS stream, as a [`Stream`]. With the feature `hyper`
/// it has hyper's traits too.
///
/// The waits are those of the inner stream: the log shows their location. Waiting for bytes does
/// not lose any: [`readable`](Stream::readable) and [`closed`](Stream::closed) read one byte ahead.
/// Nothing is lost or written twice if a wait is interrupted or dropped, provided that this holds
/// for the inner stream (it does for those of rustls over a [`Compat`](super::Compat)).
///
/// If the inner stream holds written bytes back, because its socket has no room, every later wait
/// to read or write sends them. (The wait of a reading [half](Split) does not.)
/// [`flush`](Stream::flush) waits until they are sent; [`write_all`](Stream::write_all) does so
/// too. [`shutdown`](Stream::shutdown) closes the inner stream, which sends the `close_notify` of
/// TLS. If the socket has no room for it, every later wait continues the closing.
///
/// [`reset`](Stream::reset) leaves the inner stream as it is, and refuses later writes. Once the
/// stream is dropped, the peer of a TLS stream reads an end without `close_notify`, which is an
/// error.
///
/// ```no_run
/// use std::io;
///
/// use futures_io::{AsyncRead, AsyncWrite};
/// use net::interop::FromFutures;
/// use net::{BufReader, Stream};
///
/// /// Reads a line from a stream of another library.
/// async fn line(stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<Vec<u8>> {
///     let mut line = Vec::new();
///     BufReader::new(FromFutures::new(stream)).read_line(&mut line, 1024).await?;
///     Ok(line)
/// }
/// ```
pub struct FromFutures<T> {
    /// Borrowed during a poll.
    shared: RefCell<Shared<T>>,
    peer: Option<SocketAddr>,
}

/// The stream, and the state of its two directions.
pub(super) struct Shared<T> {
    io: T,
    /// The byte that was read ahead.
    ahead: Option<u8>,
    /// The error that followed the byte read ahead.
    late: Option<io::Error>,
    end: End,
}

/// The state of the writing direction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Closing,
    Closed,
}

impl<T: AsyncRead + AsyncWrite + Unpin> FromFutures<T> {
    /// Wraps a stream.
    #[must_use]
    pub fn new(io: T) -> FromFutures<T> {
        let shared = Shared { io, ahead: None, late: None, end: End::Open };
        FromFutures { shared: RefCell::new(shared), peer: None }
    }

    /// Sets the address that [`Stream::peer`] returns, for example for an access log.
    #[must_use]
    pub fn with_peer(self, peer: Option<SocketAddr>) -> FromFutures<T> {
        FromFutures { peer, ..self }
    }

    /// The stream, for a poll with exclusive access.
    #[cfg(feature = "hyper")]
    pub(super) fn shared(&mut self) -> &mut Shared<T> {
        self.shared.get_mut()
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Shared<T> {
    /// Reads. If the read has to wait, sends the bytes that are held back, because the peer may be
    /// waiting for them.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Polled<usize> {
        let read = self.poll_read_only(cx, buf);
        self.or_flush(read, cx)
    }

    fn poll_read_only(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Polled<usize> {
        if let Some(error) = self.late.take()
            && !is_over(&error)
        {
            return Poll::Ready(Err(error));
        }
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let Some(byte) = self.ahead.take() else {
            return Pin::new(&mut self.io).poll_read(cx, buf);
        };
        buf[0] = byte;
        if buf.len() == 1 {
            return Poll::Ready(Ok(1));
        }
        // The bytes after it have usually arrived too.
        match Pin::new(&mut self.io).poll_read(cx, &mut buf[1..]) {
            Poll::Ready(Ok(n)) => return Poll::Ready(Ok(1 + n)),
            Poll::Ready(Err(error)) => self.late = Some(error),
            Poll::Pending => {}
        }
        Poll::Ready(Ok(1))
    }

    /// Reads a byte ahead, if there is none yet. Returns `false` at the end of the stream.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Polled<bool> {
        if self.ahead.is_some() || self.late.is_some() {
            return Poll::Ready(Ok(true));
        }
        let mut byte = [0];
        let n = ready!(Pin::new(&mut self.io).poll_read(cx, &mut byte))?;
        self.ahead = (n == 1).then_some(byte[0]);
        Poll::Ready(Ok(n == 1))
    }

    /// Waits until the peer has closed its side. In the meantime, sends the bytes that are held
    /// back.
    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Polled<()> {
        // The error that the next read will return. A failed stream counts as closed.
        if self.late.as_ref().is_some_and(|error| error.interrupt().is_none()) {
            return Poll::Ready(Ok(()));
        }
        let looked = match self.poll_ahead(cx) {
            // No second byte can be read ahead, so the end cannot be detected.
            Poll::Ready(Ok(true)) => Poll::Pending,
            looked => looked,
        };
        match ready!(self.or_flush(looked, cx)) {
            Err(error) if error.interrupt().is_some() => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Sends the bytes that are held back, if a read has to wait. Returns the result of the read.
    fn or_flush<R>(&mut self, read: Polled<R>, cx: &mut Context<'_>) -> Polled<R> {
        if read.is_pending()
            && let Poll::Ready(Err(error)) = self.poll_flush(cx)
            && error.interrupt().is_some()
        {
            return Poll::Ready(Err(error));
        }
        // Any other error belongs to writing. The next write will return it again.
        read
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Polled<usize> {
        if self.end != End::Open {
            return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
        }
        // An inner stream may take bytes and then fail, because a wait for earlier bytes has ended
        // with an interrupt. So send the earlier bytes first; then this write begins without a
        // wait.
        ready!(self.poll_flush(cx))?;
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    pub(super) fn poll_close(&mut self, cx: &mut Context<'_>) -> Polled<()> {
        if self.end == End::Open {
            self.end = End::Closing;
        }
        self.poll_flush(cx)
    }

    /// Begins to close the stream, from a function that has no context.
    fn close(&mut self) -> io::Result<()> {
        match self.poll_close(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(closed) => closed,
            // A later wait continues.
            Poll::Pending => Ok(()),
        }
    }

    /// Sends the bytes that are held back, or continues to close.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Polled<()> {
        match self.end {
            End::Open => Pin::new(&mut self.io).poll_flush(cx),
            End::Closing => {
                ready!(Pin::new(&mut self.io).poll_close(cx))?;
                self.end = End::Closed;
                Poll::Ready(Ok(()))
            }
            End::Closed => Poll::Ready(Ok(())),
        }
    }
}

impl<T> fmt::Debug for FromFutures<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFutures").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// The inner stream knows no call sites, so the log shows the location where it was made.
impl<T: AsyncRead + AsyncWrite + Unpin> Stream for FromFutures<T> {
    fn read_from(&mut self, buf: &mut [u8], _: Site) -> impl Future<Output = io::Result<usize>> {
        poll_fn(|cx| self.shared.get_mut().poll_read(cx, buf))
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], _: Site) -> io::Result<usize> {
        poll_fn(|cx| self.shared.get_mut().poll_write(cx, bufs)).await
    }

    fn flush(&mut self) -> impl Future<Output = io::Result<()>> {
        poll_fn(|cx| self.shared.get_mut().poll_flush(cx))
    }

    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        let shared = self.shared.get_mut();
        poll_fn(move |cx| {
            let looked = shared.poll_ahead(cx);
            shared.or_flush(looked, cx).map_ok(drop)
        })
    }

    fn shutdown(&mut self) -> io::Result<()> {
        self.shared.get_mut().close()
    }

    fn has_end_message(&self) -> bool {
        true
    }

    fn reset(&mut self) -> io::Result<()> {
        self.shared.get_mut().end = End::Closed;
        Ok(())
    }

    fn closed(&mut self) -> impl Future<Output = io::Result<()>> {
        poll_fn(|cx| self.shared.get_mut().poll_closed(cx))
    }

    fn sent(&mut self) -> impl Future<Output = io::Result<()>> {
        self.flush()
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Split for FromFutures<T> {
    fn split(&mut self) -> (impl Stream, impl Stream) {
        (Half(&self.shared), Half(&self.shared))
    }
}

/// A borrowed stream, shared by two halves: one reads, and the other writes. A wait to read must
/// not flush, because it would take the waker of the other half's wait.
struct Half<'s, T>(&'s RefCell<Shared<T>>);

impl<T: AsyncRead + AsyncWrite + Unpin> Stream for Half<'_, T> {
    fn read_from(&mut self, buf: &mut [u8], _: Site) -> impl Future<Output = io::Result<usize>> {
        poll_fn(|cx| self.0.borrow_mut().poll_read_only(cx, buf))
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], _: Site) -> io::Result<usize> {
        poll_fn(|cx| self.0.borrow_mut().poll_write(cx, bufs)).await
    }

    fn flush(&mut self) -> impl Future<Output = io::Result<()>> {
        poll_fn(|cx| self.0.borrow_mut().poll_flush(cx))
    }

    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        poll_fn(|cx| self.0.borrow_mut().poll_ahead(cx).map_ok(drop))
    }

    fn shutdown(&mut self) -> io::Result<()> {
        self.0.borrow_mut().close()
    }

    fn has_end_message(&self) -> bool {
        true
    }
}
