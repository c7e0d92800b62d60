//! Adapters between the streams and the traits of other libraries. Each library has its own
//! feature.
//!
//! [`Compat`] implements the polled traits: those of `futures-io` with the feature `futures-io`,
//! those of hyper's `rt` with the feature `hyper`, and those of `tokio::io` with the feature
//! `tokio-io`. The feature `hyper` also adds a timer, an executor and a conversion of errors.
//!
//! `ThreadBound` is for libraries that demand `Send`. It needs the feature `hyper` or `tokio-io`.
//!
//! `FromFutures` is the opposite: it makes a stream of `futures-io`, for example a TLS stream, a
//! [`Stream`]. It needs the feature `futures-io`, and also has hyper's traits.

#[cfg(feature = "futures-io")]
mod from_futures;
#[cfg(feature = "futures-io")]
mod futures_io;
#[cfg(feature = "hyper")]
mod hyper;
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
mod thread_bound;
#[cfg(feature = "tokio-io")]
mod tokio_io;

use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::net::Shutdown;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use traps::Site;
use traps::internal::{budget_from, take_budget};
use traps::io::Direction;
use traps::{Interruptible, current_deadline};

use crate::buffer::BufReader;
use crate::family::Family;
use crate::pipe::PipeEnd;
use crate::process::{End, Pipe, read_from, write_to};
use crate::serve::Connection;
use crate::socket::{self, receive, transmit};
use crate::stream::Stream;
use crate::stream_socket::{ReadHalf, StreamSocket, WriteHalf};

#[cfg(feature = "futures-io")]
pub use self::from_futures::FromFutures;
#[cfg(feature = "hyper")]
pub use self::hyper::{KernelExecutor, KernelTimer, io_error};
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
pub use self::thread_bound::ThreadBound;

/// A stream with the polled traits of other libraries: `futures_io::{AsyncRead, AsyncWrite}`,
/// `hyper::rt::{Read, Write}` and `tokio::io::{AsyncRead, AsyncWrite}`, depending on the features.
///
/// An operation is tried first. If it would block, it *blocks* the task that polls it, like the
/// operations of [`Stream`]. The log shows the location where the wrapper was made. Each direction
/// has its own wait, and both may wait in one task. A wait continues until its direction is polled
/// again or closed, or the wrapper is dropped. If the wait ends with the timeout of a scope that
/// the task has left, the timeout is ignored. A wait costs one allocation, and an operation without
/// a wait costs none.
///
/// # Errors
///
/// Returns an error if the stream fails. If an interrupt ends a wait, returns an `io::Error` that
/// carries the [`Interrupt`](traps::Interrupt); then nothing was read or written. The kind of the
/// error is `TimedOut`, or `Other` for a cancellation. It is never `Interrupted`, because callers
/// try again after that kind.
///
/// ```no_run
/// # #[cfg(feature = "futures-io")]
/// # async fn example() -> std::io::Result<()> {
/// use net::TcpStream;
/// use net::interop::Compat;
///
/// fn takes(_: impl futures_io::AsyncRead + futures_io::AsyncWrite) {}
/// takes(Compat::new(TcpStream::connect("localhost:80").await?));
/// # Ok(())
/// # }
/// ```
pub struct Compat<S> {
    /// The stream, shared only with the waits.
    stream: Rc<S>,
    reading: Option<Wait>,
    writing: Option<Wait>,
    site: Site,
}

impl<S: fmt::Debug> fmt::Debug for Compat<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compat").field("stream", &self.stream).finish_non_exhaustive()
    }
}

/// The wait of an operation, for readiness or for a new budget.
type Wait = Pin<Box<dyn Future<Output = io::Result<()>>>>;

type Polled<T> = Poll<io::Result<T>>;

impl<S: TwoWay> Compat<S> {
    /// Wraps a stream.
    #[track_caller]
    pub fn new(stream: S) -> Compat<S> {
        Compat { stream: Rc::new(stream), reading: None, writing: None, site: Location::caller() }
    }

    /// Returns the stream. Bytes that another library has read ahead are not in it.
    #[must_use]
    pub fn into_inner(self) -> S {
        drop((self.reading, self.writing));
        Rc::into_inner(self.stream).expect("nobody but the waits shares it")
    }

    /// Repeats `try_io` until it does not return `None`, with a wait before each retry. Takes one
    /// operation from the budget.
    fn poll(
        &mut self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut try_io: impl FnMut(&S) -> Option<io::Result<usize>>,
    ) -> Polled<usize> {
        let Compat { stream, reading, writing, site } = self;
        let (wait, site) = (if direction == Direction::Read { reading } else { writing }, *site);
        if wait.is_none() && !take_budget() {
            *wait = Some(Box::pin(async move { Ok(budget_from(site).await?) }));
        }
        loop {
            if let Some(under_way) = wait {
                let ended = ready!(under_way.as_mut().poll(cx));
                *wait = None;
                ended.or_else(|error| if is_over(&error) { Ok(()) } else { Err(error) })?;
            }
            if let Some(done) = try_io(stream) {
                return Poll::Ready(done);
            }
            let stream = stream.clone();
            *wait = Some(Box::pin(async move { stream.wait(direction, site).await }));
        }
    }

    /// Shuts the writing direction down. If the peer has reset the connection, there is nothing
    /// left to shut down, and libraries would pass the error on although their work is done.
    /// tokio's sockets ignore it too.
    fn poll_end(&mut self) -> Polled<()> {
        self.writing = None;
        match S::end_shared(&mut self.stream) {
            Err(error) if error.kind() == ErrorKind::NotConnected => Poll::Ready(Ok(())),
            ended => Poll::Ready(ended),
        }
    }
}

/// Returns whether the error of a wait no longer concerns the present poll. Such a wait was ended
/// by the timeout of a scope that the task has left since it last polled the wait, or by the
/// cancellation of an earlier task.
fn is_over(error: &io::Error) -> bool {
    error.interrupt().is_some_and(|why| {
        // The deadline of an enclosing scope is the soonest deadline in force, or a later one.
        let is_around =
            || current_deadline().is_some_and(|soonest| why.deadline() >= Some(soonest));
        why.has_left() || why.set_at().is_some() && !is_around()
    })
}

/// A stream whose operations and waits need only a shared reference.
///
/// A [`Stream`] is borrowed mutably by its one wait. A library that polls has a wait in each
/// direction, and tries one direction while the other one waits.
pub trait TwoWay: 'static {
    /// Reads the bytes that have arrived. Returns `None` if there are none, and zero if the peer
    /// has finished.
    fn take(&self, buf: &mut [u8]) -> Option<io::Result<usize>>;

    /// Writes as many bytes as there is room for. Returns `None` if there is no room.
    fn put(&self, buf: &[u8]) -> Option<io::Result<usize>>;

    /// Waits until the next try in `direction` may succeed. *Blocks.* Call it only after a try has
    /// returned `None`.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait, and the system's error.
    fn wait(&self, direction: Direction, site: Site) -> impl Future<Output = io::Result<()>>;

    /// Shuts the writing direction down.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    fn end(&self) -> io::Result<()>;

    /// Shuts the writing direction of a stream down that no writing wait shares.
    #[doc(hidden)]
    fn end_shared(this: &mut Rc<Self>) -> io::Result<()> {
        this.end()
    }
}

impl<F: Family + 'static> TwoWay for StreamSocket<F> {
    fn take(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        if self.reader().drained.get() && !buf.is_empty() {
            None
        } else {
            receive(&self.io, buf, None)
        }
    }

    fn put(&self, buf: &[u8]) -> Option<io::Result<usize>> {
        if self.io.full.get() && !buf.is_empty() { None } else { transmit(&self.io, buf, None) }
    }

    async fn wait(&self, direction: Direction, site: Site) -> io::Result<()> {
        // The next try must ask the system, however this wait ends.
        self.io.drained.set(false);
        self.io.full.set(false);
        Ok(self.io.ready(direction, site).await?)
    }

    fn end(&self) -> io::Result<()> {
        socket::shutdown(&self.io, Shutdown::Write)
    }
}

/// Implements functions of [`TwoWay`] for a wrapper, by those of the stream `$to`.
macro_rules! forward {
    ($self:ident, $to:expr, take $($rest:ident)*) => {
        fn take(&$self, buf: &mut [u8]) -> Option<io::Result<usize>> {
            $to.take(buf)
        }
        forward!($self, $to, $($rest)*);
    };
    ($self:ident, $to:expr, put) => {
        fn put(&$self, buf: &[u8]) -> Option<io::Result<usize>> {
            $to.put(buf)
        }
        fn end(&$self) -> io::Result<()> {
            $to.end()
        }
        forward!($self, $to,);
    };
    ($self:ident, $to:expr,) => {
        async fn wait(&$self, direction: Direction, site: Site) -> io::Result<()> {
            $to.wait(direction, site).await
        }
    };
}

/// A served connection keeps its slot inside the wrapper.
impl<S: TwoWay> TwoWay for Connection<S> {
    forward!(self, (**self), take put);
}

/// The bytes in the buffer are read first.
impl<S: TwoWay + Stream> TwoWay for BufReader<S> {
    forward!(self, self.stream, put);

    fn take(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        match self.buffer().is_empty() {
            true => self.stream.take(buf),
            false => Some(Ok(self.take_shared(buf))),
        }
    }
}

impl<F: Family, C: Deref<Target = StreamSocket<F>> + 'static> TwoWay for ReadHalf<C> {
    forward!(self, self.0, take);

    fn put(&self, _: &[u8]) -> Option<io::Result<usize>> {
        Some(Err(ErrorKind::Unsupported.into()))
    }

    fn end(&self) -> io::Result<()> {
        Ok(())
    }
}

impl<F: Family, C: Deref<Target = StreamSocket<F>> + 'static> TwoWay for WriteHalf<C> {
    forward!(self, self.0, put);

    fn take(&self, _: &mut [u8]) -> Option<io::Result<usize>> {
        Some(Err(ErrorKind::Unsupported.into()))
    }
}

impl TwoWay for PipeEnd {
    fn take(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        let most = buf.len().min(self.most);
        self.incoming.take(&mut buf[..most])
    }

    fn put(&self, buf: &[u8]) -> Option<io::Result<usize>> {
        self.outgoing.put(&[IoSlice::new(buf)], self.most)
    }

    async fn wait(&self, direction: Direction, site: Site) -> io::Result<()> {
        let (reader, writer) = (&self.incoming.reader, &self.outgoing.writer);
        let line = if direction == Direction::Read { reader } else { writer };
        Ok(line.wait_from(site).await?)
    }

    fn end(&self) -> io::Result<()> {
        self.outgoing.close();
        Ok(())
    }
}

/// A pipe to or from a process has one direction only. In the other direction, the system fails
/// with EBADF.
impl TwoWay for Pipe {
    fn take(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        let io = match &self.0 {
            End::System(io) => io,
            End::Memory(end) => return end.take(buf),
            End::Closed => return Some(Err(ErrorKind::BrokenPipe.into())),
        };
        let done = read_from(io, buf);
        done.iter().flatten().for_each(|n| io.note(Direction::Read, *n));
        done
    }

    fn put(&self, buf: &[u8]) -> Option<io::Result<usize>> {
        let io = match &self.0 {
            End::System(io) => io,
            End::Memory(end) => return end.put(buf),
            End::Closed => return Some(Err(ErrorKind::BrokenPipe.into())),
        };
        let done = write_to(io, &[IoSlice::new(buf)]);
        done.iter().flatten().for_each(|n| io.note(Direction::Write, *n));
        done
    }

    async fn wait(&self, direction: Direction, site: Site) -> io::Result<()> {
        match &self.0 {
            End::System(io) => Ok(io.ready(direction, site).await?),
            End::Memory(end) => end.wait(direction, site).await,
            End::Closed => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    /// Does nothing: only dropping the pipe closes it, unless [`Compat`] owns it.
    fn end(&self) -> io::Result<()> {
        Ok(())
    }

    fn end_shared(this: &mut Rc<Self>) -> io::Result<()> {
        // No task waits to read from a writing end, and `poll_end` has dropped the writing wait. So
        // no other reference exists, and the pipe closes.
        Rc::get_mut(this).map_or(Ok(()), Pipe::shutdown)
    }
}
