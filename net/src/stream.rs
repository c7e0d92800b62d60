//! The interface of a byte stream, independent of the transport.

use std::future::{Future, pending, poll_fn, ready};
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::pin;
use std::task::{Context, Poll};

use traps::Site;
use traps::internal::take_budget;
use traps::yield_now;

use crate::limits::READ_BUFFER;
use crate::socket::FileSender;

/// A byte stream in both directions, used by one task at a time.
///
/// Every method traps only if it would block. An interrupted wait returns an `io::Error` that
/// carries the [`traps::Interrupt`]. After an interrupt, `read`, `write`, `write_vectored` and
/// `readable` have done nothing, and can be called again.
///
/// ```
/// use std::io;
/// use net::Stream;
///
/// /// Reads a length and then that many bytes, and sends them back.
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
    /// Reads the bytes that have arrived into `buf`, and waits until there are some. Returns zero
    /// if the peer has finished.
    #[track_caller]
    fn read(&mut self, buf: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        self.read_from(buf, Location::caller())
    }

    /// Reads like `read`, for a wrapper that passes on the location of its caller, which the log
    /// shows. If a stream cannot pass the location on, the log shows that of the stream.
    async fn read_from(&mut self, buf: &mut [u8], site: Site) -> io::Result<usize>;

    /// Fills all of `buf`, and waits when there is nothing to read.
    ///
    /// # Errors
    ///
    /// Returns `UnexpectedEof` if the stream ends too early, and the errors of
    /// [`read`](Stream::read). The bytes read before an error are lost;
    /// [`BufReader`](crate::BufReader) keeps them.
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

    /// Reads up to the end of the stream, and appends the bytes to `out`, which may hold `limit`
    /// bytes at most.
    ///
    /// # Errors
    ///
    /// Returns `FileTooLarge` if there are more bytes, and the errors of [`read`](Stream::read).
    /// After an error, `out` has all bytes that were read, even those above the limit, and a second
    /// call continues.
    #[track_caller]
    fn read_to_end(
        &mut self,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> impl Future<Output = io::Result<()>> {
        read_to_end(self, out, limit, Location::caller())
    }

    /// Reads up to the end of the stream, and appends the text to `out`, which may hold `limit`
    /// bytes at most.
    ///
    /// # Errors
    ///
    /// Returns `InvalidData` if the bytes are not UTF-8, and the errors of
    /// [`read_to_end`](Stream::read_to_end). After an error, `out` is unchanged, and the bytes that
    /// were read are lost.
    #[track_caller]
    fn read_to_string(
        &mut self,
        out: &mut String,
        limit: usize,
    ) -> impl Future<Output = io::Result<()>> {
        let site = Location::caller();
        async move {
            let mut bytes = Vec::new();
            read_to_end(self, &mut bytes, limit.saturating_sub(out.len()), site).await?;
            let invalid = |error| io::Error::new(ErrorKind::InvalidData, error);
            out.push_str(std::str::from_utf8(&bytes).map_err(invalid)?);
            Ok(())
        }
    }

    /// Writes some of `buf`, and waits until there is room. Returns the number of bytes written.
    #[track_caller]
    fn write(&mut self, buf: &[u8]) -> impl Future<Output = io::Result<usize>> {
        let site = Location::caller();
        async move { self.write_from(&[IoSlice::new(buf)], site).await }
    }

    /// Writes some of the slices, in order, at once. Returns the number of bytes written in all.
    #[track_caller]
    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> impl Future<Output = io::Result<usize>> {
        self.write_from(bufs, Location::caller())
    }

    /// Writes like `write_vectored`, for a wrapper; see [`read_from`](Stream::read_from).
    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize>;

    /// Writes all of `buf`, and waits when there is no room. Then [flushes](Stream::flush) the
    /// stream.
    ///
    /// # Errors
    ///
    /// Returns `WriteZero` if the stream takes no bytes, and the errors of
    /// [`write`](Stream::write). Then a part of `buf` may have been written.
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
            self.flush().await
        }
    }

    /// Waits until the stream holds back no written bytes. A socket or a pipe passes its bytes on
    /// at once, so it does not wait. A TLS stream may hold back bytes if its socket had no room for
    /// them.
    fn flush(&mut self) -> impl Future<Output = io::Result<()>> {
        ready(Ok(()))
    }

    /// Waits for bytes or for the end of the stream, but does not read, so a waiting connection
    /// needs no buffer. This wait may end early, so the next read may still wait.
    fn readable(&mut self) -> impl Future<Output = io::Result<()>>;

    /// Reads the bytes that have already arrived. Returns `None` if a read would wait. `cx` is the
    /// context of the current poll.
    fn try_read(&mut self, buf: &mut [u8], cx: &mut Context<'_>) -> Option<io::Result<usize>> {
        let Poll::Ready(done) = pin!(self.read(buf)).poll(cx) else { return None };
        Some(done)
    }

    /// Writes as many bytes as there is room for now. Returns `None` if a write would wait. `cx` is
    /// the context of the current poll.
    fn try_write(&mut self, buf: &[u8], cx: &mut Context<'_>) -> Option<io::Result<usize>> {
        let Poll::Ready(done) = pin!(self.write(buf)).poll(cx) else { return None };
        Some(done)
    }

    /// Ends the writing direction: the peer reads the end of the stream after the written bytes.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    fn shutdown(&mut self) -> io::Result<()>;

    /// Returns whether the end of the stream is a message, like the `close_notify` of TLS. Without
    /// a [`shutdown`](Stream::shutdown), the peer of such a stream must assume that the data was
    /// cut off. The end of a socket or a pipe is not a message, so it is enough to drop the stream.
    /// A wrapper must return the value of its stream.
    fn has_end_message(&self) -> bool {
        false
    }

    /// Abandons the stream. Bytes that the peer has not taken yet may be discarded. The peer gets a
    /// reset, never an end that it could take for the end of a complete message. Drop the stream
    /// soon, because a socket sends its reset when it is closed. A stream without resets is shut
    /// down instead.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    fn reset(&mut self) -> io::Result<()> {
        self.shutdown()
    }

    /// Waits until the peer has closed its side, even if there are still bytes to read before the
    /// end. A failed connection counts as closed. A stream that cannot detect the end waits
    /// forever.
    fn closed(&mut self) -> impl Future<Output = io::Result<()>> {
        pending()
    }

    /// Returns whether the connection has failed, for example by a reset, so that no byte written
    /// from now on can reach the peer. If the peer has only closed its side, that is not a failure.
    /// Never waits. Returns `false` for a stream that cannot detect a failure.
    fn has_failed(&self) -> bool {
        false
    }

    /// Waits until the system has sent all written bytes to the peer. A stream that cannot detect
    /// this does not wait; a TCP connection can on Linux alone. After this call, a TCP connection
    /// has room for more only when every byte has been sent.
    fn sent(&mut self) -> impl Future<Output = io::Result<()>> {
        ready(Ok(()))
    }

    /// Returns the means to send a file without reading it, or `None` if the program must write the
    /// bytes, as with TLS. A [`StreamSocket`](crate::StreamSocket) has them. A wrapper may return
    /// those of its stream if it neither changes nor counts the bytes that it writes.
    fn file_sender(&self) -> Option<FileSender<'_>> {
        None
    }

    /// Returns the address of the other end, if the stream has one and knows it.
    fn peer(&self) -> Option<SocketAddr> {
        None
    }
}

/// Implements [`Stream::read_to_end`], for a wrapper that passes on its own caller's location.
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

/// Reads the bytes that have arrived. Returns `None` if there are none. Unlike `try_read`, does not
/// take a spent budget for an empty stream, but yields and tries again.
pub(crate) async fn look(stream: &mut impl Stream, buf: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        let found = poll_fn(|cx| Poll::Ready(stream.try_read(buf, cx))).await;
        // If some budget is left, the try did ask the system.
        if found.is_some() || take_budget() {
            return found.transpose();
        }
        yield_now().await?;
    }
}

/// Implements [`Stream`] for a wrapper, by the methods of the stream `$to`.
macro_rules! forward {
    ($self:ident, $to:expr) => {
        fn read_from(
            &mut $self,
            buf: &mut [u8],
            site: Site,
        ) -> impl Future<Output = io::Result<usize>> {
            $to.read_from(buf, site)
        }

        #[track_caller]
        fn readable(&mut $self) -> impl Future<Output = io::Result<()>> {
            $to.readable()
        }

        #[inline(always)]
        fn try_read(
            &mut $self,
            buf: &mut [u8],
            cx: &mut Context<'_>,
        ) -> Option<io::Result<usize>> {
            $to.try_read(buf, cx)
        }

        #[inline(always)]
        fn try_write(&mut $self, buf: &[u8], cx: &mut Context<'_>) -> Option<io::Result<usize>> {
            $to.try_write(buf, cx)
        }

        async fn write_from(&mut $self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
            $to.write_from(bufs, site).await
        }

        #[track_caller]
        fn flush(&mut $self) -> impl Future<Output = io::Result<()>> {
            $to.flush()
        }

        fn shutdown(&mut $self) -> io::Result<()> {
            Stream::shutdown(&mut $to)
        }

        fn has_end_message(&$self) -> bool {
            $to.has_end_message()
        }

        fn reset(&mut $self) -> io::Result<()> {
            $to.reset()
        }

        #[track_caller]
        fn closed(&mut $self) -> impl Future<Output = io::Result<()>> {
            $to.closed()
        }

        fn has_failed(&$self) -> bool {
            $to.has_failed()
        }

        #[track_caller]
        fn sent(&mut $self) -> impl Future<Output = io::Result<()>> {
            $to.sent()
        }

        fn file_sender(&$self) -> Option<crate::socket::FileSender<'_>> {
            $to.file_sender()
        }

        fn peer(&$self) -> Option<SocketAddr> {
            $to.peer()
        }
    };
}
pub(crate) use forward;

/// Borrowed streams are streams, so a wrapper can borrow a stream and leave it to its owner.
impl<S: Stream> Stream for &mut S {
    forward!(self, **self);
}
