//! Streams of this crate behind the traits of other libraries, each by a feature of its own.
//!
//! [`Compat`] has the polled traits: those of `futures-io` by the feature `futures-io`, those of
//! hyper's `rt` by the feature `hyper`, with its timer, its executor and its errors.

#[cfg(feature = "futures-io")]
mod futures_io;
#[cfg(feature = "hyper")]
mod hyper;

use std::io::{self, ErrorKind, IoSlice};
use std::net::Shutdown;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rustix::io::{read, write};
use traps::core::names::Site;
use traps::io::Direction;
use traps::{Interruptible, budget_from, current_deadline, take_budget};

use crate::attempt::attempt;
use crate::family::Family;
use crate::pipe::PipeEnd;
use crate::process::Pipe;
use crate::socket::{self, receive, transmit};
use crate::stream::Stream;
use crate::stream_socket::StreamSocket;

#[cfg(feature = "hyper")]
pub use self::hyper::{KernelExecutor, KernelTimer, io_error};

/// A stream with the polled traits of other libraries: `futures_io::{AsyncRead, AsyncWrite}` and
/// `hyper::rt::{Read, Write}`, as far as their features are on.
///
/// An operation is tried first. Where it would block, it *blocks* the task that polls it, as the
/// operations of [`Stream`] do; the log shows the place where the wrapper was made.
/// The two directions wait apart, and both may wait in one task. A wait goes on until the direction
/// is polled again or the wrapper is dropped; a timeout that has been left meanwhile is forgotten.
/// A wait costs an allocation, and an operation that does not wait costs none.
///
/// # Errors
///
/// Those of the stream. An interrupt that ends a wait comes as an `io::Error` that carries the
/// [`Interrupt`](traps::Interrupt): nothing was read or written. Its kind is `TimedOut` or, for a
/// cancellation, `Other`; never `Interrupted`, which callers take for an invitation to try again.
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
    /// Shared with the waits alone.
    stream: Rc<S>,
    reading: Option<Wait>,
    writing: Option<Wait>,
    site: Site,
}

/// What an operation waits for: readiness, or a new budget.
type Wait = Pin<Box<dyn Future<Output = io::Result<()>>>>;

type Polled<T> = Poll<io::Result<T>>;

impl<S: TwoWay> Compat<S> {
    /// Wraps a stream.
    #[track_caller]
    pub fn new(stream: S) -> Compat<S> {
        Compat { stream: Rc::new(stream), reading: None, writing: None, site: Location::caller() }
    }

    /// Gives the stream back. What another library has read ahead is not in it.
    #[must_use]
    pub fn into_inner(self) -> S {
        drop((self.reading, self.writing));
        Rc::into_inner(self.stream).expect("nobody but the waits shares it")
    }

    /// Makes attempts until one comes to something. Takes one operation from the budget.
    fn poll(
        &mut self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(&S) -> Option<io::Result<usize>>,
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
            if let Some(done) = attempt(stream) {
                return Poll::Ready(done);
            }
            let stream = stream.clone();
            *wait = Some(Box::pin(async move { stream.wait(direction, site).await }));
        }
    }

    fn poll_end(&mut self) -> Polled<()> {
        self.writing = None;
        Poll::Ready(S::end(&mut self.stream))
    }
}

/// Whether a wait was ended for somebody else: by the timeout of a scope in which it was begun, and
/// which has been left since without another poll of it; or by the cancellation of an earlier task.
fn is_over(error: &io::Error) -> bool {
    error.interrupt().is_some_and(|why| {
        // The deadline of a scope around us is the soonest one or later.
        let is_around =
            || current_deadline().is_some_and(|soonest| why.deadline() >= Some(soonest));
        why.has_left() || why.set_at().is_some() && !is_around()
    })
}

/// A stream that is tried and waited for through a shared reference.
///
/// A [`Stream`] is borrowed by its one wait. A library that polls has a wait in each direction, and
/// tries the other direction meanwhile.
pub trait TwoWay: 'static {
    /// Reads what is there; `None` where nothing is. Zero: the peer has finished.
    fn take(&self, buf: &mut [u8]) -> Option<io::Result<usize>>;

    /// Writes what there is room for; `None` where there is none.
    fn put(&self, buf: &[u8]) -> Option<io::Result<usize>>;

    /// Waits until another try is worth it. *Blocks.* To be called only after a try gave `None`.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; the system's.
    fn wait(&self, direction: Direction, site: Site) -> impl Future<Output = io::Result<()>>;

    /// Says that nothing more will be written.
    ///
    /// # Errors
    ///
    /// The system's.
    fn end(this: &mut Rc<Self>) -> io::Result<()>;
}

impl<F: Family + 'static> TwoWay for StreamSocket<F> {
    fn take(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        if self.reader().drained.get() && !buf.is_empty() { None } else { receive(&self.io, buf) }
    }

    fn put(&self, buf: &[u8]) -> Option<io::Result<usize>> {
        if self.io.full.get() && !buf.is_empty() { None } else { transmit(&self.io, buf) }
    }

    async fn wait(&self, direction: Direction, site: Site) -> io::Result<()> {
        // The next try is a real one, whatever becomes of this wait.
        self.io.drained.set(false);
        self.io.full.set(false);
        Ok(self.io.ready(direction, site).await?)
    }

    fn end(this: &mut Rc<Self>) -> io::Result<()> {
        socket::shutdown(&this.io, Shutdown::Write)
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

    fn end(this: &mut Rc<Self>) -> io::Result<()> {
        this.outgoing.close();
        Ok(())
    }
}

/// Of the direction that it has not, the system says that it is no such descriptor.
impl TwoWay for Pipe {
    fn take(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        let Some(io) = &self.0 else { return Some(Err(ErrorKind::BrokenPipe.into())) };
        let done = attempt(|| read(&**io, &mut *buf));
        done.iter().flatten().for_each(|n| io.note(Direction::Read, *n));
        done
    }

    fn put(&self, buf: &[u8]) -> Option<io::Result<usize>> {
        let Some(io) = &self.0 else { return Some(Err(ErrorKind::BrokenPipe.into())) };
        let done = attempt(|| write(&**io, buf));
        done.iter().flatten().for_each(|n| io.note(Direction::Write, *n));
        done
    }

    async fn wait(&self, direction: Direction, site: Site) -> io::Result<()> {
        let io = self.0.as_ref().ok_or(ErrorKind::BrokenPipe)?;
        Ok(io.ready(direction, site).await?)
    }

    fn end(this: &mut Rc<Self>) -> io::Result<()> {
        // Where we write nobody waits for something to read, so nobody else has it.
        Rc::get_mut(this).map_or(Ok(()), Pipe::shutdown)
    }
}
