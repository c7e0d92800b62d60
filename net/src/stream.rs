//! What a byte stream is to the code above it, whatever carries the bytes.

use std::future::{Future, pending, poll_fn, ready};
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::pin;
use std::task::{Context, Poll};

use traps::core::names::Site;
use traps::{take_budget, yield_now};

use crate::limits::READ_BUFFER;

/// A byte stream in both directions, used by one task at a time.
///
/// Every method traps only when it would block; a wait that is interrupted comes back as an
/// `io::Error` that carries the [`traps::Interrupt`]. `read`, `write`, `write_vectored` and
/// `readable` have done nothing then, and can be called again.
///
/// ```
/// use std::io;
/// use net::Stream;
///
/// /// Reads a length and so many bytes, and sends them back.
/// async fn answer(stream: &mut impl Stream) -> io::Result<()> {
///     let mut length = [0; 2];
///     stream.read_exact(&mut length).await?;
///     let mut body = vec![0; usize::from(u16::from_be_bytes(length))];
///     stream.read_exact(&mut body).await?;
///     stream.write_all(&body).await
/// }
/// ```
#[allow(async_fn_in_trait, reason = "tasks of one thread need no Send bound")]
pub trait Stream {
    /// Reads what is there into `buf`, waiting until something is. Zero: the peer has finished.
    #[track_caller]
    fn read(&mut self, buf: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        self.read_from(buf, Location::caller())
    }

    /// Like `read`, for a wrapper that knows its own caller's place in the source, which the log
    /// shows. A stream that cannot pass it on shows its own.
    async fn read_from(&mut self, buf: &mut [u8], site: Site) -> io::Result<usize>;

    /// Fills all of `buf`, waiting whenever nothing is there.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if the stream ends before; those of [`read`](Stream::read). What was read
    /// before an error is lost; [`BufReader`](crate::BufReader) keeps it.
    #[track_caller]
    fn read_exact(&mut self, buf: &mut [u8]) -> impl Future<Output = io::Result<()>> {
        let site = Location::caller();
        async move {
            let mut at = 0;
            while at < buf.len() {
                match self.read_from(&mut buf[at..], site).await? {
                    0 => return Err(ErrorKind::UnexpectedEof.into()),
                    n => at += n,
                }
            }
            Ok(())
        }
    }

    /// Appends what comes until the end to `out`, which is to have `limit` bytes at most.
    ///
    /// # Errors
    ///
    /// `FileTooLarge` if more comes; those of [`read`](Stream::read). All that was read before an
    /// error is in `out`, also what is too much, and a second call goes on.
    #[track_caller]
    fn read_to_end(
        &mut self,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> impl Future<Output = io::Result<()>> {
        read_to_end(self, out, limit, Location::caller())
    }

    /// Writes some of `buf`, waiting until there is room. Returns how much.
    #[track_caller]
    fn write(&mut self, buf: &[u8]) -> impl Future<Output = io::Result<usize>> {
        let site = Location::caller();
        async move { self.write_from(&[IoSlice::new(buf)], site).await }
    }

    /// Writes some of the slices, in order, in one go. Returns how much in all.
    #[track_caller]
    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> impl Future<Output = io::Result<usize>> {
        self.write_from(bufs, Location::caller())
    }

    /// Like `write_vectored`, for a wrapper, as [`read_from`](Stream::read_from).
    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize>;

    /// Writes all of `buf`, waiting whenever there is no room.
    ///
    /// # Errors
    ///
    /// `WriteZero` if the stream takes nothing; those of [`write`](Stream::write). Some of `buf`
    /// may be written then.
    #[track_caller]
    fn write_all(&mut self, buf: &[u8]) -> impl Future<Output = io::Result<()>> {
        let site = Location::caller();
        async move {
            let mut rest = buf;
            while !rest.is_empty() {
                match self.write_from(&[IoSlice::new(rest)], site).await? {
                    0 => return Err(ErrorKind::WriteZero.into()),
                    n => rest = &rest[n..],
                }
            }
            Ok(())
        }
    }

    /// Waits until there is something to read, or the end of the stream, without reading it: so
    /// that a waiting connection owns no buffer. May end early: a read after it may still wait.
    fn readable(&mut self) -> impl Future<Output = io::Result<()>>;

    /// Reads what is there already; `None` where that takes a wait. Of whoever is polled with `cx`.
    fn try_read(&mut self, buf: &mut [u8], cx: &mut Context<'_>) -> Option<io::Result<usize>> {
        let Poll::Ready(done) = pin!(self.read(buf)).poll(cx) else { return None };
        Some(done)
    }

    /// Writes what there is room for already; `None` where that takes a wait. As `try_read`.
    fn try_write(&mut self, buf: &[u8], cx: &mut Context<'_>) -> Option<io::Result<usize>> {
        let Poll::Ready(done) = pin!(self.write(buf)).poll(cx) else { return None };
        Some(done)
    }

    /// Says that nothing more will be written.
    ///
    /// # Errors
    ///
    /// The system's.
    fn shutdown(&mut self) -> io::Result<()>;

    /// Gives the stream up: what was written and not taken may be thrown away, and the peer meets
    /// a reset, never an end that it could take for a whole message. Drop the stream soon: a socket
    /// is reset by its closing. A stream that knows no reset only says that it ends.
    ///
    /// # Errors
    ///
    /// The system's.
    fn reset(&mut self) -> io::Result<()> {
        self.shutdown()
    }

    /// Waits until the peer has closed its side, whether or not bytes are unread before that. A
    /// connection that failed counts as closed. A stream that cannot tell waits for ever.
    fn closed(&mut self) -> impl Future<Output = io::Result<()>> {
        pending()
    }

    /// Waits until the system has handed on to the peer all that was written. A stream that cannot
    /// tell does not wait. After it, a TCP connection has room for more only where nothing is
    /// unsent.
    fn sent(&mut self) -> impl Future<Output = io::Result<()>> {
        ready(Ok(()))
    }

    /// The address of the other end, if the stream has one and knows it.
    fn peer_addr(&self) -> Option<SocketAddr> {
        None
    }
}

/// [`Stream::read_to_end`], for a wrapper that knows its own caller's place in the source.
pub(crate) async fn read_to_end(
    stream: &mut (impl Stream + ?Sized),
    out: &mut Vec<u8>,
    limit: usize,
    site: Site,
) -> io::Result<()> {
    let mut piece = vec![0; READ_BUFFER];
    while out.len() <= limit {
        match stream.read_from(&mut piece, site).await? {
            0 => return Ok(()),
            n => out.extend_from_slice(&piece[..n]),
        }
    }
    Err(io::Error::new(ErrorKind::FileTooLarge, format!("more than {limit} bytes came")))
}

/// Reads what is there; `None` if nothing is. Other than a try it does not take a spent budget for
/// that: then it gives way and looks again.
pub(crate) async fn look(stream: &mut impl Stream, buf: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        let found = poll_fn(|cx| Poll::Ready(stream.try_read(buf, cx))).await;
        // Where something is left of the budget, the try had its part.
        if found.is_some() || take_budget() {
            return found.transpose();
        }
        yield_now().await?;
    }
}

/// A stream that is lent: whoever has it gives it back.
impl<S: Stream> Stream for &mut S {
    fn read_from(&mut self, buf: &mut [u8], site: Site) -> impl Future<Output = io::Result<usize>> {
        (**self).read_from(buf, site)
    }

    #[track_caller]
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        (**self).readable()
    }

    #[inline(always)]
    fn try_read(&mut self, buf: &mut [u8], cx: &mut Context<'_>) -> Option<io::Result<usize>> {
        (**self).try_read(buf, cx)
    }

    #[inline(always)]
    fn try_write(&mut self, buf: &[u8], cx: &mut Context<'_>) -> Option<io::Result<usize>> {
        (**self).try_write(buf, cx)
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
        (**self).write_from(bufs, site).await
    }

    fn shutdown(&mut self) -> io::Result<()> {
        (**self).shutdown()
    }

    fn reset(&mut self) -> io::Result<()> {
        (**self).reset()
    }

    #[track_caller]
    fn closed(&mut self) -> impl Future<Output = io::Result<()>> {
        (**self).closed()
    }

    #[track_caller]
    fn sent(&mut self) -> impl Future<Output = io::Result<()>> {
        (**self).sent()
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        (**self).peer_addr()
    }
}
