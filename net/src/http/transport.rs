//! The stream of a busy connection, what is to be written to it, and every wait for its peer.
//!
//! It knows bytes and phases; it may not know requests or responses.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use traps::{Time, take_budget, yield_now};

use super::config::Config;
use super::connections::Entry;
use super::deadlines::{BodyRate, BodyWait, Phase};
use crate::limits::{GATHER, OPERATION, PIECE};
use crate::stream::{Stream, look};
use crate::write_deadline::{guard, is_timeout, write_until_stalled};

/// Why a wait for the peer came to nothing.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The deadline of that phase passed.
    Expired(Phase),
    /// The stream failed, or an interrupt from further out ended the wait.
    Failed(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Failed(error)
    }
}

/// What may have come, or be on its way, that the last read of a busy connection has not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unseen {
    /// Nothing that matters: one small answer went out at once. It is with the peer, whatever
    /// happens to the connection then, as far as that can be known.
    Nothing,
    /// Something to read: it has waited since, or written more than once.
    Input,
    /// Much that was written, too: a reset would take it from the peer.
    Output,
}

/// The stream of a connection that is busy, and what is to be written to it.
#[derive(Debug)]
pub(crate) struct Transport<S> {
    stream: S,
    pub(crate) entry: Rc<Entry>,
    /// Answers, gathered.
    pub(crate) out: Vec<u8>,
    /// Until when the head in hand must be whole, once it is waited for.
    pub(crate) head_until: Option<Time>,
    /// Since when the peer has taken nothing, while there is something for it.
    stalled: Cell<Option<Time>>,
    /// The last read took all there was: the next one would block.
    drained: bool,
    /// The peer has finished.
    pub(crate) ended: bool,
    pub(crate) unseen: Unseen,
    /// Requests that were answered since this task last waited to read.
    pub(crate) answered: u32,
    /// The last bytes came after the grace of a drain.
    pub(crate) late: bool,
}

impl<S> Transport<S> {
    /// Moves the state to another stream, or to none while it is handed on.
    pub(crate) fn over<T>(self, stream: T) -> Transport<T> {
        let Transport {
            entry,
            out,
            head_until,
            stalled,
            drained,
            ended,
            unseen,
            answered,
            late,
            ..
        } = self;
        Transport {
            stream,
            entry,
            out,
            head_until,
            stalled,
            drained,
            ended,
            unseen,
            answered,
            late,
        }
    }
}

impl<S: Stream> Transport<S> {
    /// Over a stream on which something has come. `out` is empty.
    #[inline]
    pub(crate) fn new(stream: S, entry: Rc<Entry>, out: Vec<u8>, config: &Config) -> Transport<S> {
        let late = config.open.is_after_grace(&entry);
        Transport {
            stream,
            entry,
            out,
            head_until: None,
            stalled: Cell::new(None),
            drained: false,
            ended: false,
            unseen: Unseen::Nothing,
            answered: 0,
            late,
        }
    }

    /// Whether so much was gathered that it is to be written first.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.out.len() > GATHER
    }

    /// Whether a read would begin with a wait.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained
    }

    /// Time passes now, or what was gathered goes out before the answer is whole. Nothing is taken
    /// back by a read: what matters is much that was written, and one look more is rare then.
    fn take_time(&mut self) {
        let unseen = if self.is_full() { Unseen::Output } else { Unseen::Input };
        self.unseen = self.unseen.max(unseen);
    }

    // ---- Reading --------------------------------------------------------------------------------

    /// Reads more of a head, waiting for it if need be. Zero: the peer has finished.
    pub(crate) async fn read_head(
        &mut self,
        buffer: &mut [u8],
        config: &Config,
    ) -> Result<usize, Trouble> {
        let until = match self.head_until {
            Some(until) => until,
            None => *self.head_until.insert(self.entry.now() + config.deadlines.head),
        };
        self.read_until(buffer, (Phase::Head, until), config).await
    }

    /// Reads more of a body, as [`read_head`](Transport::read_head).
    pub(crate) async fn read_body(
        &mut self,
        buffer: &mut [u8],
        rate: &mut BodyRate,
        config: &Config,
    ) -> Result<usize, Trouble> {
        loop {
            if let Some(n) = self.try_read(buffer).await? {
                rate.count(Duration::ZERO, n);
                return Ok(n);
            }
            self.begin_wait(config).await?;
            let deadline = self.entry.deadline();
            let begun = deadline.now();
            let (phase, until) = rate.begin(&config.deadlines, begun);
            let wait = BodyWait { rate, deadline, begun };
            let waited = guard(deadline, until, self.stream.readable()).await;
            drop(wait);
            self.end_wait(phase, waited, config)?;
        }
    }

    /// Reads what the peer still sends, until then.
    pub(crate) async fn read_until(
        &mut self,
        buffer: &mut [u8],
        (phase, until): (Phase, Time),
        config: &Config,
    ) -> Result<usize, Trouble> {
        loop {
            if let Some(n) = self.try_read(buffer).await? {
                return Ok(n);
            }
            self.begin_wait(config).await?;
            let waited = guard(self.entry.deadline(), until, self.stream.readable()).await;
            self.end_wait(phase, waited, config)?;
        }
    }

    /// Before a wait to read: the peer may wait for an answer itself.
    async fn begin_wait(&mut self, config: &Config) -> Result<(), Trouble> {
        self.flush(config).await?;
        self.answered = 0;
        Ok(())
    }

    fn end_wait(
        &mut self,
        phase: Phase,
        waited: io::Result<()>,
        config: &Config,
    ) -> Result<(), Trouble> {
        self.late = config.open.is_after_grace(&self.entry);
        match waited {
            Err(error) if is_timeout(&error) => return Err(Trouble::Expired(phase)),
            waited => waited?,
        }
        self.drained = false;
        Ok(())
    }

    /// Reads what is there; `None` instead of a wait, or for want of budget. Zero: the peer has
    /// finished.
    #[inline(always)]
    pub(crate) fn read_now(
        &mut self,
        buffer: &mut [u8],
        cx: &mut Context<'_>,
    ) -> io::Result<Option<usize>> {
        if self.drained {
            return Ok(None);
        }
        let size = buffer.len();
        let n = self.stream.try_read(buffer, cx).transpose()?;
        self.drained = n.is_none_or(|n| n < size);
        self.ended = n == Some(0);
        Ok(n)
    }

    /// Reads without a wait, from a future that has no context.
    async fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        poll_fn(|cx| Poll::Ready(self.read_now(buffer, cx))).await
    }

    /// Looks without a wait. `None`: nothing is there for certain.
    pub(crate) async fn look(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let n = look(&mut self.stream, buffer).await?;
        self.ended = n == Some(0);
        Ok(n)
    }

    // ---- Writing --------------------------------------------------------------------------------

    /// Writes out what was gathered, and lets every other task that is ready run.
    pub(crate) async fn give_way(&mut self, config: &Config) -> Result<(), Trouble> {
        self.begin_wait(config).await?;
        yield_now().await.map_err(|interrupt| Trouble::Failed(interrupt.into()))
    }

    /// Writes all that was gathered.
    pub(crate) async fn flush(&mut self, config: &Config) -> Result<(), Trouble> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.take_time();
        let size = self.out.len();
        match poll_fn(|cx| Poll::Ready(self.try_flush(cx))).await? {
            true => {
                weigh(size);
                Ok(())
            }
            // In a box, as all that few connections ever need.
            false => Box::pin(self.write_through(&[], config)).await,
        }
    }

    /// Writes what was gathered, as far as that takes no wait. Whether it was all.
    #[inline(always)]
    pub(crate) fn try_flush(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        while !self.out.is_empty() {
            match self.stream.try_write(&self.out, cx).transpose()? {
                Some(0) => return Err(ErrorKind::WriteZero.into()),
                // Noted at once: whoever is dropped in the next wait has not written it twice.
                Some(n) => self.written(n),
                None => {
                    self.unseen = Unseen::Output;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// So much of what was gathered is written.
    fn written(&mut self, n: usize) {
        self.stalled.set(None);
        if n == self.out.len() {
            self.out.clear();
        } else {
            self.unseen = Unseen::Output;
            self.out.drain(..n);
        }
    }

    /// Writes all that was gathered and then `more`, which is not copied.
    pub(crate) async fn write_through(
        &mut self,
        more: &[u8],
        config: &Config,
    ) -> Result<(), Trouble> {
        self.unseen = Unseen::Output;
        let (span, mut at) = (config.deadlines.write, 0);
        while !self.out.is_empty() || at < more.len() {
            let Transport { stream, entry, out, stalled, .. } = self;
            let rest = &more[at..more.len().min(at + PIECE)];
            let bufs = [IoSlice::new(out), IoSlice::new(rest)];
            let written = write_until_stalled(stream, &bufs, (entry.deadline(), span), stalled);
            let n = match written.await? {
                Some(0) => return Err(Trouble::Failed(ErrorKind::WriteZero.into())),
                Some(n) => n,
                None => return Err(Trouble::Expired(Phase::Write)),
            };
            weigh(n);
            let gathered = n.min(self.out.len());
            self.written(gathered);
            at += n - gathered;
        }
        Ok(())
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

/// Runs a handler's work. Whenever it waits for something other than this stream, what was gathered
/// goes out, as far as that takes no wait: answers before its own are not held back. A failure is
/// met again by the next write.
pub(crate) fn flushing<S: Stream, T>(
    transport: &RefCell<Transport<S>>,
    mut work: impl Future<Output = T> + Unpin,
) -> impl Future<Output = T> {
    poll_fn(move |cx| {
        let polled = Pin::new(&mut work).poll(cx);
        if polled.is_pending()
            && let Ok(mut transport) = transport.try_borrow_mut()
        {
            transport.take_time();
            match transport.try_flush(cx) {
                Ok(true) => transport.entry.flushed(),
                // With a budget that is spent it writes nothing: then in the next turn.
                Ok(false) if !take_budget() => cx.waker().wake_by_ref(),
                Ok(false) | Err(_) => {}
            }
        }
        polled
    })
}
