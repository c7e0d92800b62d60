//! A deadline for writing: a peer that takes nothing is cut off, one that is slow is not.
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

/// Lets a writer wait only so long for a peer that takes nothing; then the stream is reset.
///
/// The span begins anew whenever the stream took some of the bytes, of a large write after 1 MiB at
/// the latest. So a peer that is slow but reads is never cut off, and one that does not read holds
/// what is to be written for one span, whatever its size (row D21), and however often the write is
/// broken off by a timeout and tried again.
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
    /// Of the waits since the stream last took something: the end of their span.
    until: Cell<Time>,
}

impl WriteDeadline {
    /// What is usual: 30 s.
    pub const SPAN: Duration = Duration::from_secs(30);

    /// One with a connection deadline of its own, made by a trap that *answers*. Zero has passed at
    /// once, `Duration::MAX` never.
    #[track_caller]
    pub fn new(span: Duration) -> impl Future<Output = WriteDeadline> {
        let deadline = connection_deadline();
        async move { WriteDeadline::over(deadline.await, span) }
    }
}

impl<D: Borrow<ConnectionDeadline>> WriteDeadline<D> {
    /// One over a deadline that is there, and that has other phases. Does not trap.
    pub fn over(deadline: D, span: Duration) -> WriteDeadline<D> {
        let (writing, until) = (Cell::new(false), Cell::new(Time::NEVER));
        WriteDeadline { deadline, span, writing, until }
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
        let done = match now(|| stream.write_vectored(bufs)).await {
            Some(done) => Some(done?),
            None => {
                let deadline = self.deadline.borrow();
                let until = until(deadline, self.span, self.until.get());
                self.until.set(until);
                let written = guard(deadline, until, stream.write_vectored(bufs)).await;
                end(stream, bufs, written).await?
            }
        };
        self.until.set(Time::NEVER);
        done.ok_or_else(|| ErrorKind::ConnectionReset.into())
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

/// How long a write may wait for which there was no room. `before`: how long one may that was
/// broken off since the stream last took something.
pub(crate) fn until(deadline: &ConnectionDeadline, span: Duration, before: Time) -> Time {
    if before == Time::NEVER { deadline.now() + span } else { before }
}

/// Runs it so long.
#[track_caller]
pub(crate) fn guard<F>(deadline: &ConnectionDeadline, until: Time, write: F) -> Guard<'_, F>
where
    F: Future<Output = io::Result<usize>>,
{
    match until {
        // Up to never it would be no guard, and a timeout from further out would bear its name.
        Time::NEVER => deadline.guard(Duration::MAX, write),
        until => deadline.guard_at(until, write),
    }
}

/// What that write came to. `None`: the deadline passed, and the stream is reset.
///
/// Not before a last try: the system says that there is room only when a third of its buffer is
/// free, so that a peer which reads slowly is moving although nobody was told.
pub(crate) async fn end<S>(
    stream: &mut S,
    bufs: &[IoSlice<'_>],
    written: io::Result<usize>,
) -> io::Result<Option<usize>>
where
    S: Stream,
{
    if timed_out(&written) {
        loop {
            if let Some(done) = now(|| stream.write_vectored(bufs)).await {
                return done.map(Some);
            }
            if take_budget() {
                break;
            }
            // Others of its task have spent the budget, which says nothing of the peer.
            yield_now().await?;
        }
        stream.reset()?;
        return Ok(None);
    }
    written.map(Some)
}

/// Whether what a guard with a limit came to is that its own deadline passed.
pub(crate) fn timed_out<T>(guarded: &io::Result<T>) -> bool {
    guarded.as_ref().is_err_and(is_timeout)
}

/// Whether that error of a guard with a limit says so. Outside of it no other interrupt has this
/// name before it leaves a scope further out.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    error.interrupt().is_some_and(|interrupt| interrupt.kind() == Kind::TaskTimeout)
}
