//! The stream of a connection, what is to be written to it, and every wait for it.
//!
//! It knows bytes and phases; it may not know requests or responses.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use traps::{Time, take_budget, yield_now};

use super::config::Config;
use super::connection::Server;
use super::phase::{Limit, Phase, Watch};
use super::seats::{Seat, Taken, Waits};
use crate::attempt::now;
use crate::limits::{GATHER, OPERATION, PIECE};
use crate::stream::{Stream, look};

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

/// All that there is of a connection while nothing comes.
#[derive(Debug)]
pub(crate) struct Line<S: Stream, C: Deref<Target = Config>> {
    pub(crate) stream: S,
    /// Left after the stream.
    pub(crate) seat: Taken<C>,
}

impl<S: Stream, C: Deref<Target = Config>> Drop for Line<S, C> {
    fn drop(&mut self) {
        if self.seat.is_cut() {
            // However that came: the peer can tell by a reset only. It ends one way or another.
            let _ = self.stream.reset();
        }
    }
}

impl<S: Stream, C: Deref<Target = Config>> Line<S, C> {
    pub(crate) fn new(stream: S, seat: Rc<Seat>, config: C) -> Line<S, C> {
        Line { stream, seat: Taken { seat, config } }
    }
}

impl<S: Stream, C: Server> Line<S, C> {
    /// Waits for a request to begin, or for the end, under the deadline, which
    /// [was made](Seat::begin).
    pub(super) fn wait(&mut self) -> impl Future<Output = io::Result<()>> {
        let Line { stream, seat: Taken { seat, config } } = self;
        let config: &Config = config;
        let deadline = seat.deadline();
        let (waits, limit) = match (seat.has_asked(), deadline.until()) {
            // It has begun since this connection last looked.
            (true, _) if config.is_draining() => (Waits::Next, Limit::After(Duration::ZERO)),
            (true, _) => (Waits::Next, Limit::After(config.deadlines.idle)),
            (false, Time::NEVER) => {
                let (waits, span) = config.seats.first_byte(config.deadlines.head);
                (waits, Limit::After(span))
            }
            // The last wait ended for nothing.
            (false, until) => (Waits::First, Limit::At(until)),
        };
        seat.waits.set(waits);
        C::limited(limit, deadline, stream.readable())
    }

    /// Whether there is something to read. A wait for it that begins is given up at once.
    #[cold]
    pub(super) fn has_come(&mut self, cx: &mut Context<'_>) -> bool {
        matches!(pin!(self.stream.readable()).poll(cx), Poll::Ready(Ok(())))
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
pub(crate) struct Wire<S> {
    stream: S,
    /// Answers, gathered.
    pub(crate) out: Vec<u8>,
    pub(crate) watch: Watch,
    /// The last read took all there was: the next one would block.
    drained: bool,
    /// The peer has finished.
    pub(crate) ended: bool,
    pub(crate) unseen: Unseen,
    /// Requests that were answered since this task last waited to read.
    pub(crate) answered: u32,
}

impl<S> Wire<S> {
    /// The same over another stream, or over none while it is handed on.
    pub(crate) fn over<T>(self, stream: T) -> Wire<T> {
        let Wire { out, watch, drained, ended, unseen, answered, .. } = self;
        Wire { stream, out, watch, drained, ended, unseen, answered }
    }

    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.out
    }
}

impl<S: Stream> Wire<S> {
    /// Of a stream on which something has come. `out` is empty.
    pub(crate) fn new(stream: S, out: Vec<u8>, watch: Watch) -> Wire<S> {
        let (drained, ended, unseen) = (false, false, Unseen::Nothing);
        Wire { stream, out, watch, drained, ended, unseen, answered: 0 }
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

    /// Waits for something to read, or the end. Flushes first: the peer may wait for an answer.
    async fn wait(&mut self, phase: Phase, config: &Config) -> Result<(), Trouble> {
        self.flush(config).await?;
        self.answered = 0;
        let wait = self.watch.begin(phase, &config.deadlines);
        let waited = wait.guard(self.stream.readable()).await;
        wait.end(waited)?;
        self.drained = false;
        Ok(())
    }

    /// Reads what is there, waiting for it if need be. Zero: the peer has finished.
    pub(crate) async fn read(
        &mut self,
        buffer: &mut [u8],
        phase: Phase,
        config: &Config,
    ) -> Result<usize, Trouble> {
        loop {
            if self.drained {
                self.wait(phase, config).await?;
            }
            // No guard around a read that does not wait.
            if let Some(n) = self.read_now(buffer).await? {
                if phase == Phase::Body {
                    self.watch.count(n);
                }
                return Ok(n);
            }
        }
    }

    /// Reads what is there; `None` instead of a wait. Zero: the peer has finished.
    #[inline(always)]
    pub(crate) fn try_read(
        &mut self,
        buffer: &mut [u8],
        cx: &mut Context<'_>,
    ) -> io::Result<Option<usize>> {
        let size = buffer.len();
        let n = self.stream.try_read(buffer, cx).transpose()?;
        self.drained = n.is_none_or(|n| n < size);
        self.ended = n == Some(0);
        Ok(n)
    }

    /// The same, for certain: `None` is never for want of budget.
    pub(crate) async fn look(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let n = look(&mut self.stream, buffer).await?;
        self.ended = n == Some(0);
        Ok(n)
    }

    /// The same, for who has no context.
    pub(crate) async fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        poll_fn(|cx| Poll::Ready(self.try_read(buffer, cx))).await
    }

    /// Writes out what was gathered, and lets every other task that is ready run.
    pub(crate) async fn give_way(&mut self, config: &Config) -> Result<(), Trouble> {
        self.flush(config).await?;
        self.answered = 0;
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
            false => Box::pin(self.write_rest(None, &[], config)).await,
        }
    }

    /// Writes what was gathered, as far as that takes no wait. Whether it was all.
    #[inline(always)]
    pub(crate) fn try_flush(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let size = self.out.len();
        if size == 0 {
            return Ok(true);
        }
        match self.stream.try_write(&self.out, cx) {
            Some(Ok(n)) if n == size => {
                self.out.clear();
                self.watch.wrote();
                Ok(true)
            }
            tried => self.flush_on(tried, cx),
        }
    }

    /// The same where the first try has not written it all.
    #[cold]
    fn flush_on(
        &mut self,
        mut tried: Option<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> io::Result<bool> {
        self.unseen = Unseen::Output;
        loop {
            match tried.transpose()? {
                Some(0) => return Err(ErrorKind::WriteZero.into()),
                // Noted at once: whoever is dropped in the next wait has not written it twice.
                Some(n) => self.written(n),
                None => return Ok(false),
            }
            if self.out.is_empty() {
                return Ok(true);
            }
            tried = self.stream.try_write(&self.out, cx);
        }
    }

    /// So much of what was gathered is written.
    fn written(&mut self, n: usize) {
        self.watch.wrote();
        if n == self.out.len() {
            self.out.clear();
        } else {
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
        let bufs = [IoSlice::new(&self.out), IoSlice::new(&more[..more.len().min(PIECE)])];
        let written = now(|| self.stream.write_vectored(&bufs)).await.transpose()?;
        self.write_rest(written, more, config).await
    }

    /// The rest of it, after the first try, which waits for nothing.
    async fn write_rest(
        &mut self,
        mut tried: Option<usize>,
        more: &[u8],
        config: &Config,
    ) -> Result<(), Trouble> {
        let mut at = 0;
        loop {
            let n = match tried {
                Some(0) => return Err(Trouble::Failed(ErrorKind::WriteZero.into())),
                Some(n) => n,
                None => {
                    self.watch.begin_write(&config.deadlines);
                    let rest = &more[at..more.len().min(at + PIECE)];
                    let bufs = [IoSlice::new(&self.out), IoSlice::new(rest)];
                    let write = self.stream.write_vectored(&bufs);
                    let written = self.watch.guard_write(write).await;
                    Watch::end_write(&mut self.stream, &bufs, written).await?
                }
            };
            weigh(n);
            let gathered = n.min(self.out.len());
            self.written(gathered);
            at += n - gathered;
            if self.out.is_empty() && at == more.len() {
                return Ok(());
            }
            let rest = &more[at..more.len().min(at + PIECE)];
            let bufs = [IoSlice::new(&self.out), IoSlice::new(rest)];
            tried = now(|| self.stream.write_vectored(&bufs)).await.transpose()?;
        }
    }

    /// Whether the date that was read last is no longer right.
    #[inline]
    pub(crate) fn is_date_old(&self, config: &Config) -> bool {
        self.watch.seat.is_date_old(config)
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

/// Runs a handler's work. Whenever it waits for something other than this wire, what was gathered
/// goes out, as far as that takes no wait: answers before its own are not held back. A failure is
/// met again by the next write.
pub(crate) fn attend<S: Stream, T>(
    wire: &RefCell<Wire<S>>,
    mut work: impl Future<Output = T> + Unpin,
) -> impl Future<Output = T> {
    poll_fn(move |cx| {
        let polled = Pin::new(&mut work).poll(cx);
        if polled.is_pending()
            && let Ok(mut wire) = wire.try_borrow_mut()
        {
            wire.take_time();
            match wire.try_flush(cx) {
                Ok(true) => wire.watch.seat.flushed(),
                // With a budget that is spent it writes nothing: then in the next turn.
                Ok(false) if !take_budget() => cx.waker().wake_by_ref(),
                Ok(false) | Err(_) => {}
            }
        }
        polled
    })
}
