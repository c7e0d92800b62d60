//! A deadline for writes: the stream of a peer that takes no bytes is reset.
//!
//! This module writes to a [`Stream`] and resets it. It keeps no bytes.

use std::borrow::Borrow;
use std::cell::{RefCell, RefMut};
use std::io::{self, ErrorKind, IoSlice};
use std::time::Duration;

use traps::{ConnectionDeadline, Time};

use crate::limits::PIECE;
use crate::min_rate::MinRate;
use crate::rate_meter::{RateMeter, flush_within, write_until_stalled};
use crate::stream::Stream;

/// A limit on how long a writer waits for a peer that takes no bytes. When the limit has passed,
/// the stream is reset.
///
/// The limit starts again whenever the stream has taken some bytes, and during a large write after
/// 1 MiB at the latest. So a peer that does not read can hold up a write for `span`, or an eighth
/// more at most. The size of the write does not matter. Timeouts after which the caller tries again
/// do not matter either. A peer that reads is not cut off if the stream takes some bytes in each
/// `span`. TCP does not take bytes each time the peer reads some, because its buffers free room in
/// steps of up to some hundred kilobytes.
///
/// Use one deadline per stream: time spent waiting for one stream would count for another. As for
/// every stream, only one task writes at a time. A writer that finds another one writing under the
/// same deadline gets `ResourceBusy`, writes nothing, and does not move the deadline.
///
/// Costs nothing while the stream takes the bytes at once. The first wait makes one allocation.
/// Each wait costs as much as a guard of [`ConnectionDeadline`], and no separate trap.
///
/// ```no_run
/// # async fn example(mut stream: net::TcpStream) -> std::io::Result<()> {
/// use net::WriteDeadline;
///
/// let deadline = traps::connection_deadline().await;
/// let deadline = WriteDeadline::new(deadline, WriteDeadline::SPAN);
/// deadline.write_all(&mut stream, &[b'x'; 100_000]).await
/// # }
/// ```
#[derive(Debug)]
pub struct WriteDeadline<D = ConnectionDeadline> {
    deadline: D,
    span: Duration,
    /// The rate of the peer, borrowed by the present writer.
    meter: RefCell<RateMeter>,
}

impl WriteDeadline {
    /// The default limit: 30 s.
    pub const SPAN: Duration = Duration::from_secs(30);
}

#[allow(clippy::await_holding_refcell_ref, reason = "whoever else looks at it is refused")]
impl<D: Borrow<ConnectionDeadline>> WriteDeadline<D> {
    /// Makes a write deadline over a connection deadline, which may have other phases too. A `span`
    /// of zero has passed at once, and `Duration::MAX` never passes.
    pub fn new(deadline: D, span: Duration) -> WriteDeadline<D> {
        WriteDeadline { deadline, span, meter: RefCell::default() }
    }

    /// Writes some of the slices, in order, at once. *Blocks* until there is room. Returns the
    /// number of bytes written in all.
    ///
    /// # Errors
    ///
    /// Returns `ConnectionReset` if there was no room in time. The stream has then been reset, so
    /// drop it. Returns `ResourceBusy` if another task is writing, the stream's error if it fails,
    /// and the interrupt that ended the wait. Then nothing was written.
    pub async fn write_vectored<S: Stream>(
        &self,
        stream: &mut S,
        bufs: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        let mut meter = self.meter()?;
        self.write_some(stream, bufs, &mut meter).await
    }

    /// Writes all the bytes, and flushes the stream. *Blocks* when there is no room.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`write_vectored`](WriteDeadline::write_vectored), and `WriteZero` if
    /// the stream takes no bytes. Then a part of the bytes may have been written.
    pub async fn write_all<S: Stream>(&self, stream: &mut S, bytes: &[u8]) -> io::Result<()> {
        let mut meter = self.meter()?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let piece = &rest[..rest.len().min(PIECE)];
            match self.write_some(stream, &[IoSlice::new(piece)], &mut meter).await? {
                0 => return Err(ErrorKind::WriteZero.into()),
                n => rest = &rest[n..],
            }
        }
        match flush_within(stream, self.deadline.borrow(), |now| (now + self.span, ())).await? {
            Some(()) => Ok(()),
            None => {
                stream.reset()?;
                Err(ErrorKind::ConnectionReset.into())
            }
        }
    }

    async fn write_some<S: Stream>(
        &self,
        stream: &mut S,
        bufs: &[IoSlice<'_>],
        meter: &mut RateMeter,
    ) -> io::Result<usize> {
        let limit = (self.deadline.borrow(), MinRate::at_least(1, self.span));
        match write_until_stalled(stream, bufs, limit, (meter, None), |_| Time::NEVER).await? {
            Some(n) => Ok(n),
            None => {
                stream.reset()?;
                Err(ErrorKind::ConnectionReset.into())
            }
        }
    }

    fn meter(&self) -> io::Result<RefMut<'_, RateMeter>> {
        self.meter.try_borrow_mut().map_err(|_| ErrorKind::ResourceBusy.into())
    }
}
