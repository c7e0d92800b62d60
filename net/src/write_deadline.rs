//! A deadline for writing: a peer that takes nothing is cut off.
//!
//! It writes through a [`Stream`] and resets it. It keeps no bytes.

use std::borrow::Borrow;
use std::cell::{RefCell, RefMut};
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::time::Duration;

use traps::{ConnectionDeadline, connection_deadline};

use crate::limits::PIECE;
use crate::min_rate::MinRate;
use crate::pace::{Pace, write_until_stalled};
use crate::stream::Stream;

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
/// Costs nothing while the stream takes the bytes at once. The first wait makes one allocation, and
/// each wait costs what a guard of [`ConnectionDeadline`] does; no trap.
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
    /// Borrowed by the one who writes.
    pace: RefCell<Pace>,
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

#[allow(clippy::await_holding_refcell_ref, reason = "whoever else looks at it is refused")]
impl<D: Borrow<ConnectionDeadline>> WriteDeadline<D> {
    /// One over a deadline that is there, and that has other phases. Does not trap.
    pub fn over(deadline: D, span: Duration) -> WriteDeadline<D> {
        WriteDeadline { deadline, span, pace: RefCell::default() }
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
        let mut pace = self.pace()?;
        self.write_some(stream, bufs, &mut pace).await
    }

    /// Writes all the bytes, blocking whenever there is no room.
    ///
    /// # Errors
    ///
    /// As [`write_vectored`](WriteDeadline::write_vectored), and `WriteZero`. Some of the bytes may
    /// be written then.
    pub async fn write_all<S: Stream>(&self, stream: &mut S, bytes: &[u8]) -> io::Result<()> {
        let mut pace = self.pace()?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let piece = &rest[..rest.len().min(PIECE)];
            match self.write_some(stream, &[IoSlice::new(piece)], &mut pace).await? {
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
        pace: &mut Pace,
    ) -> io::Result<usize> {
        let limit = (self.deadline.borrow(), MinRate::at_least(1, self.span));
        match write_until_stalled(stream, bufs, limit, pace).await? {
            Some(n) => Ok(n),
            None => {
                stream.reset()?;
                Err(ErrorKind::ConnectionReset.into())
            }
        }
    }

    fn pace(&self) -> io::Result<RefMut<'_, Pace>> {
        self.pace.try_borrow_mut().map_err(|_| ErrorKind::ResourceBusy.into())
    }
}
