//! What a byte stream is to the code above it, whatever carries the bytes.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::pin;
use std::task::{Context, Poll};

use traps::protocol::Site;
use traps::{take_budget, yield_now};

/// A byte stream in both directions, used by one task at a time.
///
/// Every method traps only when it would block; a wait that is interrupted comes back as an
/// `io::Error` that carries the [`traps::Interrupt`], and then nothing was read or written.
#[allow(async_fn_in_trait, reason = "tasks of one thread need no Send bound")]
pub trait Stream {
    /// Reads what is there into `buf`, waiting until something is. Zero: the peer has finished.
    fn read(&mut self, buf: &mut [u8]) -> impl Future<Output = io::Result<usize>>;

    /// The same for a wrapper that knows its own caller's place in the source. A stream that
    /// cannot pass it on names its own.
    #[track_caller]
    fn read_from(&mut self, buf: &mut [u8], site: Site) -> impl Future<Output = io::Result<usize>> {
        let _ = site;
        self.read(buf)
    }

    /// Writes some of `buf`, waiting until there is room. Returns how much.
    fn write(&mut self, buf: &[u8]) -> impl Future<Output = io::Result<usize>>;

    /// Writes some of the slices, in order, in one go. Returns how much in all.
    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> impl Future<Output = io::Result<usize>>;

    /// Waits until there is something to read, or the end of the stream, without reading it: so
    /// that a waiting connection owns no buffer.
    fn readable(&mut self) -> impl Future<Output = io::Result<()>>;

    /// Reads what is there already; `None` where that takes a wait. Of whoever is polled with `cx`.
    fn try_read(&mut self, buf: &mut [u8], cx: &mut Context<'_>) -> Option<io::Result<usize>> {
        at_once(pin!(self.read(buf)).poll(cx))
    }

    /// Writes what there is room for already; `None` where that takes a wait. As `try_read`.
    fn try_write(&mut self, buf: &[u8], cx: &mut Context<'_>) -> Option<io::Result<usize>> {
        at_once(pin!(self.write(buf)).poll(cx))
    }

    /// Whether a wait for the first byte of all had better begin with a read: it costs no more than
    /// the look that [`readable`](Stream::readable) takes, and most often finds a request. `false`
    /// is always right.
    fn reads_first(&self) -> bool {
        false
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

/// What came of a wait that was given up at its first poll.
fn at_once<T>(polled: Poll<T>) -> Option<T> {
    match polled {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// A stream that is lent: whoever has it gives it back.
impl<S: Stream> Stream for &mut S {
    #[track_caller]
    fn read(&mut self, buf: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        (**self).read(buf)
    }

    #[track_caller]
    fn read_from(&mut self, buf: &mut [u8], site: Site) -> impl Future<Output = io::Result<usize>> {
        (**self).read_from(buf, site)
    }

    #[track_caller]
    fn write(&mut self, buf: &[u8]) -> impl Future<Output = io::Result<usize>> {
        (**self).write(buf)
    }

    #[track_caller]
    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> impl Future<Output = io::Result<usize>> {
        (**self).write_vectored(bufs)
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

    fn reads_first(&self) -> bool {
        (**self).reads_first()
    }

    fn shutdown(&mut self) -> io::Result<()> {
        (**self).shutdown()
    }

    fn reset(&mut self) -> io::Result<()> {
        (**self).reset()
    }
}
