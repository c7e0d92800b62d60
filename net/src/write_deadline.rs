//! A deadline for writing: a peer that takes nothing is cut off.
//!
//! It writes through a [`Stream`] and resets it. It keeps no bytes.

use std::borrow::Borrow;
use std::cell::Cell;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::time::Duration;

use traps::{
    ConnectionDeadline, Guard, Interruptible, Kind, Time, connection_deadline, take_budget,
    yield_now,
};

use crate::attempt::now;
use crate::limits::PIECE;
use crate::stream::Stream;

/// How often a stalled write is tried again within its span.
const TRIES: u32 = 8;

/// Lets a writer wait only so long for a peer that takes nothing; then the stream is reset.
///
/// The span begins anew whenever the stream took some of the bytes, of a large write after 1 MiB at
/// the latest. So a peer that does not read holds what is to be written for one span, an eighth of
/// it more at most, whatever its size and however often the write is broken off by a timeout and
/// tried again. A peer that reads is not cut off as long as the stream takes something in each
/// span; for TCP that is not each byte that the peer reads: the system's buffers have room again in
/// steps of up to some hundred kilobytes.
///
/// It is for one stream: time that was spent waiting for one would be another's. One writer at a
/// time, which is the rule of every stream: who comes while another writes under the same deadline
/// is refused with `ResourceBusy`, writes nothing and does not move the deadline.
///
/// Costs nothing while the stream takes the bytes at once; a wait costs what a guard of
/// [`ConnectionDeadline`] does: no trap, no allocation.
///
/// ```no_run
/// # async fn example(mut stream: net::TcpStream) -> std::io::Result<()> {
/// let deadline = net::WriteDeadline::new(net::WriteDeadline::SPAN).await;
/// deadline.write_all(&mut stream, &[b'x'; 100_000]).await
/// # }
/// ```
#[derive(Debug)]
pub struct WriteDeadline<D = ConnectionDeadline> {
    deadline: D,
    span: Duration,
    writing: Cell<bool>,
    /// Since when the stream has taken nothing.
    stalled: Cell<Option<Time>>,
}

impl WriteDeadline {
    /// The default: 30 s.
    pub const SPAN: Duration = Duration::from_secs(30);

    /// One with a connection deadline of its own. Does not wait. Zero has passed at once,
    /// `Duration::MAX` never.
    #[track_caller]
    pub fn new(span: Duration) -> impl Future<Output = WriteDeadline> {
        let deadline = connection_deadline();
        async move { WriteDeadline::over(deadline.await, span) }
    }
}

impl<D: Borrow<ConnectionDeadline>> WriteDeadline<D> {
    /// One over a deadline that is there, and that has other phases. Does not trap.
    pub fn over(deadline: D, span: Duration) -> WriteDeadline<D> {
        WriteDeadline { deadline, span, writing: Cell::new(false), stalled: Cell::new(None) }
    }

    /// Writes some of the slices, in order, in one go; *blocks* until there is room. Returns how
    /// much in all.
    ///
    /// # Errors
    ///
    /// `ConnectionReset` if there was no room in time: the stream was reset, drop it.
    /// `ResourceBusy` as said above, the stream's own, and the interrupt that ended the wait: then
    /// nothing was written.
    pub async fn write_vectored<S: Stream>(
        &self,
        stream: &mut S,
        bufs: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        let _turn = self.turn()?;
        self.write_some(stream, bufs).await
    }

    /// Writes all the bytes, blocking whenever there is no room.
    ///
    /// # Errors
    ///
    /// As [`write_vectored`](WriteDeadline::write_vectored), and `WriteZero`. Some of the bytes may
    /// be written then.
    pub async fn write_all<S: Stream>(&self, stream: &mut S, bytes: &[u8]) -> io::Result<()> {
        let _turn = self.turn()?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let piece = &rest[..rest.len().min(PIECE)];
            match self.write_some(stream, &[IoSlice::new(piece)]).await? {
                0 => return Err(ErrorKind::WriteZero.into()),
                n => rest = &rest[n..],
            }
        }
        Ok(())
    }

    async fn write_some<S: Stream>(
        &self,
        stream: &mut S,
        bufs: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        let limit = (self.deadline.borrow(), self.span);
        match write_until_stalled(stream, bufs, limit, &self.stalled).await? {
            Some(n) => Ok(n),
            None => {
                stream.reset()?;
                Err(ErrorKind::ConnectionReset.into())
            }
        }
    }

    fn turn(&self) -> io::Result<Turn<'_>> {
        match self.writing.replace(true) {
            true => Err(ErrorKind::ResourceBusy.into()),
            false => Ok(Turn(&self.writing)),
        }
    }
}

/// The one writer, until it is done or dropped.
struct Turn<'d>(&'d Cell<bool>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Writes some of the slices, waiting until there is room. `None`: the stream has taken nothing for
/// the span. `stalled` is since when that is so, also from waits that were broken off.
///
/// Tries again within the span, and not only when there is said to be room: the system says so when
/// a third of its buffer is free, and says nothing of what became free right after a write that
/// filled it.
pub(crate) async fn write_until_stalled<S: Stream>(
    stream: &mut S,
    bufs: &[IoSlice<'_>],
    (deadline, span): (&ConnectionDeadline, Duration),
    stalled: &Cell<Option<Time>>,
) -> io::Result<Option<usize>> {
    loop {
        if let Some(done) = write_now(stream, bufs).await? {
            stalled.set(None);
            return done.map(Some);
        }
        let now = deadline.now();
        let since = stalled.get().unwrap_or(now);
        stalled.set(Some(since));
        let until = since + span;
        if until <= now {
            return Ok(None);
        }
        let again = if until == Time::NEVER { until } else { until.min(now + span / TRIES) };
        match guard(deadline, again, stream.write_vectored(bufs)).await {
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
            Ok(n) => {
                stalled.set(None);
                return Ok(Some(n));
            }
        }
    }
}

/// Runs `wait` until then at most.
#[track_caller]
pub(crate) fn guard<T, F>(deadline: &ConnectionDeadline, until: Time, wait: F) -> Guard<'_, F>
where
    F: Future<Output = io::Result<T>>,
{
    match until {
        // Until never is no guard, and a timeout from further out would have the name of its own.
        Time::NEVER => deadline.guard(Duration::MAX, wait),
        until => deadline.guard(until, wait),
    }
}

/// What a write comes to without a wait; `None` if it would wait.
async fn write_now<S: Stream>(
    stream: &mut S,
    bufs: &[IoSlice<'_>],
) -> io::Result<Option<io::Result<usize>>> {
    loop {
        if let Some(done) = now(|| stream.write_vectored(bufs)).await {
            return Ok(Some(done));
        }
        if take_budget() {
            return Ok(None);
        }
        // Others of its task have spent the budget, which says nothing of the peer.
        yield_now().await?;
    }
}

/// Whether that error of a guard with a limit says that its own deadline passed. Outside of it no
/// other interrupt has this name before it leaves a scope further out.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    error.interrupt().is_some_and(|interrupt| interrupt.kind() == Kind::TaskTimeout)
}
