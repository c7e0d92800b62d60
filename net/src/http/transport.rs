//! The stream of a busy connection, what is to be written to it, and every wait for its peer.
//!
//! It knows bytes and phases; it may not know requests or responses.

use std::fmt::{self, Display};
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};

use traps::{Time, take_budget, yield_now};

use super::config::Config;
use super::connections::Entry;
use super::deadlines::{Deadlines, Phase};
use super::limits::Conn;
use crate::limits::{GATHER, OPERATION, PIECE};
use crate::min_rate::MinRate;
use crate::pace::{Pace, guard, is_timeout, write_until_stalled};
use crate::stream::{Stream, look};

/// The deadline of a phase passed: the peer was too slow.
#[derive(Debug)]
pub(crate) struct Expired(Phase);

impl Expired {
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Expired>())
    }
}

impl Display for Expired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the peer was too slow ({:?})", self.0)
    }
}

impl std::error::Error for Expired {}

/// The stream of a connection that is busy, and what is to be written to it.
#[derive(Debug)]
pub(crate) struct Transport<S> {
    stream: S,
    pub(crate) entry: Rc<Entry>,
    /// Of the peer, for an access log: a peer that has gone has none.
    pub(crate) peer: Option<SocketAddr>,
    /// Answers, gathered.
    pub(crate) out: Vec<u8>,
    /// Until when the head in hand must be whole, once it is waited for.
    pub(crate) head_until: Option<Time>,
    /// How fast the peer takes what is written.
    pace: Pace,
    /// The last read took all there was: the next one would block.
    drained: bool,
    /// Something may have come since the last read: time has passed, or it was not the last step.
    stale: bool,
    /// The peer has finished.
    pub(crate) ended: bool,
    /// Requests that were answered since this task last waited to read.
    pub(crate) answered: u32,
    /// The last bytes came after the grace of a drain.
    pub(crate) late: bool,
    /// Something was read from the peer or written to it, or it was waited for.
    pub(crate) progress: bool,
}

impl<S: Stream> Transport<S> {
    /// Over a stream on which something may have come. `out` is empty.
    pub(crate) fn new(stream: S, entry: Rc<Entry>, out: Vec<u8>, config: &Config) -> Transport<S> {
        let late = config.open.is_after_grace(&entry);
        let peer = config.on_answer.0.as_ref().and_then(|_| stream.peer_addr());
        Transport {
            stream,
            entry,
            peer,
            out,
            head_until: None,
            pace: Pace::default(),
            drained: false,
            stale: false,
            ended: false,
            answered: 0,
            late,
            progress: false,
        }
    }

    /// Whether so much was gathered that it is to be written first.
    pub(crate) fn is_full(&self) -> bool {
        self.out.len() > GATHER
    }

    /// Whether a read would begin with a wait.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained
    }

    /// Whether nothing can have come since the last read, which took all.
    pub(crate) fn is_current(&self) -> bool {
        self.drained && !self.stale
    }

    /// Whether the connection closes as soon as nothing is here.
    pub(crate) fn leaves(&self, config: &Config) -> bool {
        self.entry.leaves.get() || config.is_draining() && self.entry.has_asked()
    }

    /// The connection hit the limit of that name.
    #[cold]
    pub(crate) fn hit(&self, config: &Config, name: &'static str, limit: impl Display) {
        let conn = Conn(self.entry.number, self.peer.or_else(|| self.stream.peer_addr()));
        config.open.caps.hit(conn, name, limit, self.entry.now());
    }

    /// The deadline of that phase passed: says so.
    #[cold]
    fn expire(&self, phase: Phase, config: &Config) -> io::Error {
        if let Some((name, limit)) = phase.limit(&config.deadlines) {
            self.hit(config, name, limit);
        }
        let kind =
            if phase == Phase::Write { ErrorKind::ConnectionReset } else { ErrorKind::TimedOut };
        io::Error::new(kind, Expired(phase))
    }

    /// Time passes now, or what was gathered goes out before the answer is whole.
    fn take_time(&mut self) {
        self.stale = true;
        if self.is_full() {
            self.entry.much.set(true);
        }
    }

    // ---- Reading --------------------------------------------------------------------------------

    /// Reads more of a head, waiting for it if need be. Zero: the peer has finished.
    pub(crate) async fn read_head(&mut self, buf: &mut [u8], config: &Config) -> io::Result<usize> {
        let until = match self.head_until {
            Some(until) => until,
            None => *self.head_until.insert(self.entry.now() + config.deadlines.head),
        };
        let n = self.read_until(buf, (Phase::Head, until), config).await?;
        self.note_time(config);
        Ok(n)
    }

    /// Reads more of a body, as [`read_head`](Transport::read_head), of which the peer is to send
    /// at that rate.
    pub(crate) async fn read_body(
        &mut self,
        buf: &mut [u8],
        (pace, rate): (&mut Pace, u64),
        config: &Config,
    ) -> io::Result<usize> {
        loop {
            if let Some(n) = self.try_read(buf).await? {
                pace.count(n);
                self.progress = true;
                return Ok(n);
            }
            self.begin_wait(config).await?;
            let deadline = self.entry.deadline();
            let Deadlines { body, body_window, .. } = config.deadlines;
            let patience = pace.patience(MinRate::new(rate, body_window));
            let phase = if patience < body { Phase::SlowBody(rate) } else { Phase::Body };
            let until = deadline.now() + patience.min(body);
            let wait = pace.waits(deadline);
            let waited = guard(deadline, ("body", until), self.stream.readable()).await;
            drop(wait);
            self.end_wait(phase, waited, config)?;
        }
    }

    /// Reads what the peer still sends, until then.
    pub(crate) async fn read_until(
        &mut self,
        buf: &mut [u8],
        (phase, until): (Phase, Time),
        config: &Config,
    ) -> io::Result<usize> {
        loop {
            if let Some(n) = self.try_read(buf).await? {
                return Ok(n);
            }
            self.begin_wait(config).await?;
            let limit = (if phase == Phase::Head { "head" } else { "linger" }, until);
            let waited = guard(self.entry.deadline(), limit, self.stream.readable()).await;
            self.end_wait(phase, waited, config)?;
        }
    }

    /// Before a wait to read: the peer may wait for an answer itself.
    async fn begin_wait(&mut self, config: &Config) -> io::Result<()> {
        self.flush(config).await?;
        self.answered = 0;
        self.progress = true;
        Ok(())
    }

    fn end_wait(
        &mut self,
        phase: Phase,
        waited: io::Result<()>,
        config: &Config,
    ) -> io::Result<()> {
        self.note_time(config);
        match waited {
            Err(error) if is_timeout(&error) => return Err(self.expire(phase, config)),
            waited => waited?,
        }
        self.drained = false;
        Ok(())
    }

    /// Something has come, perhaps after the grace of a drain.
    fn note_time(&mut self, config: &Config) {
        self.late = config.open.is_after_grace(&self.entry);
    }

    /// Reads what is there; `None` instead of a wait, or for want of budget. Zero: the peer has
    /// finished.
    #[inline]
    pub(crate) fn read_now(
        &mut self,
        buf: &mut [u8],
        cx: &mut Context<'_>,
    ) -> io::Result<Option<usize>> {
        if self.drained {
            return Ok(None);
        }
        let size = buf.len();
        let n = self.stream.try_read(buf, cx).transpose()?;
        self.drained = n.is_none_or(|n| n < size);
        self.stale = false;
        self.ended = n == Some(0);
        Ok(n)
    }

    /// Reads without a wait, from a future that has no context.
    async fn try_read(&mut self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        poll_fn(|cx| Poll::Ready(self.read_now(buf, cx))).await
    }

    /// Looks without a wait. `None`: nothing is there for certain.
    pub(crate) async fn look(&mut self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let n = look(&mut self.stream, buf).await?;
        self.ended = n == Some(0);
        Ok(n)
    }

    /// Waits for the end of the peer's side.
    pub(crate) fn closed(&mut self) -> impl Future<Output = io::Result<()>> {
        self.stream.closed()
    }

    // ---- Writing --------------------------------------------------------------------------------

    /// Writes out what was gathered, and lets every other task that is ready run.
    pub(crate) async fn give_way(&mut self, config: &Config) -> io::Result<()> {
        self.begin_wait(config).await?;
        Ok(yield_now().await?)
    }

    /// Writes all that was gathered.
    pub(crate) async fn flush(&mut self, config: &Config) -> io::Result<()> {
        if self.out.is_empty() {
            self.entry.flushed();
            return Ok(());
        }
        self.take_time();
        let size = self.out.len();
        if poll_fn(|cx| Poll::Ready(self.try_flush(cx))).await? {
            weigh(size);
            return Ok(());
        }
        // In a box, as all that few connections ever need.
        Box::pin(self.write_through(&[], config)).await
    }

    /// Writes what was gathered, as far as that takes no wait. Whether it was all.
    #[inline]
    pub(crate) fn try_flush(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        while !self.out.is_empty() {
            match self.stream.try_write(&self.out, cx).transpose()? {
                Some(0) => return Err(ErrorKind::WriteZero.into()),
                // Noted at once: whoever is dropped in the next wait has not written it twice.
                Some(n) => self.written(n),
                None => {
                    self.entry.much.set(true);
                    return Ok(false);
                }
            }
        }
        self.entry.flushed();
        Ok(true)
    }

    /// Writes what was gathered, as far as that takes no wait, while somebody else waits. A failure
    /// is met again by the next write.
    pub(crate) async fn flush_beside(&mut self) {
        self.take_time();
        let flush = |cx: &mut Context<'_>| {
            // With a budget that is spent it writes nothing: then in the next turn.
            if matches!(self.try_flush(cx), Ok(false)) && !take_budget() {
                cx.waker().wake_by_ref();
            }
            Poll::Ready(())
        };
        poll_fn(flush).await;
    }

    /// So much of what was gathered is written.
    fn written(&mut self, n: usize) {
        self.progress = true;
        if n == self.out.len() {
            self.out.clear();
        } else {
            self.entry.much.set(true);
            self.out.drain(..n);
        }
    }

    /// Writes all that was gathered and then `more`, which is not copied.
    pub(crate) async fn write_through(&mut self, more: &[u8], config: &Config) -> io::Result<()> {
        self.stale = true;
        self.entry.much.set(true);
        let Deadlines { write, write_rate, .. } = config.deadlines;
        let mut at = 0;
        while !self.out.is_empty() || at < more.len() {
            self.progress = true;
            let Transport { stream, entry, out, pace, .. } = self;
            let rest = &more[at..more.len().min(at + PIECE)];
            let bufs = [IoSlice::new(out), IoSlice::new(rest)];
            let limit = (entry.deadline(), MinRate::new(write_rate, write));
            let n = match write_until_stalled(stream, &bufs, limit, pace).await? {
                Some(0) => return Err(ErrorKind::WriteZero.into()),
                Some(n) => n,
                None => return Err(self.expire(Phase::Write, config)),
            };
            weigh(n);
            let gathered = n.min(self.out.len());
            self.written(gathered);
            at += n - gathered;
        }
        self.entry.flushed();
        Ok(())
    }

    /// Waits until the peer has all that was written, or its deadline has passed.
    pub(crate) async fn sent(&mut self, config: &Config) -> io::Result<()> {
        let deadline = self.entry.deadline();
        let until = deadline.now() + config.deadlines.write;
        match guard(deadline, ("write", until), self.stream.sent()).await {
            Err(error) if is_timeout(&error) => Ok(()),
            sent => sent,
        }
    }

    pub(crate) fn shutdown(&mut self) -> io::Result<()> {
        self.stream.shutdown()
    }
}

/// So many bytes were written by one operation: many count as several, or who is read as fast as it
/// writes has written 2 MiB before others have their turn.
fn weigh(bytes: usize) {
    traps::spend_budget(u32::try_from(bytes / OPERATION).unwrap_or(u32::MAX));
}
