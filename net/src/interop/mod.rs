//! Streams of this crate behind the traits of other libraries, each by a feature of its own.
//!
//! [`Compat`] has the polled traits: those of `futures-io` by the feature `futures-io`, those of
//! hyper's `rt` by the feature `hyper`, with its timer, its executor and its errors.

#[cfg(feature = "futures-io")]
mod futures_io;
#[cfg(feature = "hyper")]
mod hyper;
mod two_way;

use std::io::{self, IoSlice};
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use traps::core::names::Site;
use traps::io::Direction;
use traps::{Interruptible, budget_from, current_deadline, take_budget};

#[cfg(feature = "hyper")]
pub use self::hyper::{KernelExecutor, KernelTimer, io_error};
pub use two_way::TwoWay;

/// A stream with the polled traits of other libraries: `futures_io::{AsyncRead, AsyncWrite}` and
/// `hyper::rt::{Read, Write}`, as far as their features are on.
///
/// An operation is tried first. Where it would block, it *blocks* the task that polls it, as the
/// operations of [`Stream`](crate::Stream) do; the log shows the place where the wrapper was made.
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

impl<S: TwoWay> Compat<S> {
    /// Wraps a stream.
    #[track_caller]
    pub fn new(stream: S) -> Compat<S> {
        let (stream, site) = (Rc::new(stream), Location::caller());
        Compat { stream, reading: None, writing: None, site }
    }

    /// Gives the stream back. What another library has read ahead is not in it.
    #[must_use]
    pub fn into_inner(self) -> S {
        drop((self.reading, self.writing));
        Rc::into_inner(self.stream).expect("nobody but the waits shares it")
    }

    fn poll_take(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let Compat { stream, reading, site, .. } = self;
        poll_until_done(stream, reading, Direction::Read, site, cx, |stream| stream.take(buf))
    }

    fn poll_put(&mut self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let Compat { stream, writing, site, .. } = self;
        poll_until_done(stream, writing, Direction::Write, site, cx, |stream| stream.put(bufs))
    }

    fn poll_end(&mut self) -> Poll<io::Result<()>> {
        self.writing = None;
        Poll::Ready(S::end(&mut self.stream))
    }
}

/// Makes attempts until one comes to something; `wait` is what has to come before the next one.
/// Takes one operation from the budget.
fn poll_until_done<S: TwoWay>(
    stream: &Rc<S>,
    wait: &mut Option<Wait>,
    direction: Direction,
    site: Site,
    cx: &mut Context<'_>,
    mut attempt: impl FnMut(&S) -> Option<io::Result<usize>>,
) -> Poll<io::Result<usize>> {
    if wait.is_none() && !take_budget() {
        *wait = Some(Box::pin(async move { Ok(budget_from(site).await?) }));
    }
    loop {
        if let Some(under_way) = wait {
            let ended = ready!(under_way.as_mut().poll(cx));
            *wait = None;
            if let Err(error) = ended
                && !is_over(&error)
            {
                return Poll::Ready(Err(error));
            }
        }
        if let Some(done) = attempt(stream) {
            return Poll::Ready(done);
        }
        let stream = stream.clone();
        *wait = Some(Box::pin(async move { stream.wait(direction, site).await }));
    }
}

/// Whether a wait was ended for somebody else: by the timeout of a scope in which it was begun, and
/// which has been left since without another poll of it; or by the cancellation of an earlier task.
fn is_over(error: &io::Error) -> bool {
    error.interrupt().is_some_and(|why| {
        // The deadline of a scope around us is not before the soonest one.
        let is_around =
            || current_deadline().is_some_and(|soonest| why.deadline() >= Some(soonest));
        why.has_left() || why.set_at().is_some() && !is_around()
    })
}

impl<S: std::fmt::Debug> std::fmt::Debug for Compat<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Compat").field(&self.stream).finish()
    }
}
