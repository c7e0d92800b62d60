//! The stream of a connection, what is to be written to it, and every wait for it.
//!
//! It knows bytes and phases; it may not know requests or responses.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use traps::{Time, wall_clock, yield_now};

use super::config::Config;
use super::date::DATE;
use super::phase::{Phase, Watch};
use super::seats::Seated;
use crate::attempt::now;
use crate::limits::PIECE;
use crate::stream::Stream;

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

/// A stream and what is to be written to it.
#[derive(Debug)]
pub(crate) struct Wire<S> {
    stream: S,
    /// Answers, gathered. Without a buffer while the connection waits for its next request.
    pub(crate) out: Vec<u8>,
    pub(crate) watch: Watch,
    /// The last read took all there was: the next one would block.
    drained: bool,
    /// The peer has finished.
    pub(crate) ended: bool,
    /// Until when the date that was read last is right, on the kernel's clock.
    dated: Time,
    /// Requests that were answered since this task last waited to read.
    pub(crate) answered: u32,
}

impl<S: Stream> Wire<S> {
    pub(crate) fn new(stream: S, seat: Seated) -> Wire<S> {
        // Nothing was read, but a new connection has seldom anything to read.
        let (drained, ended, dated) = (true, false, Time::ZERO);
        let watch = Watch::new(seat);
        Wire { stream, out: Vec::new(), watch, drained, ended, dated, answered: 0 }
    }

    /// Whether a read would begin with a wait.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained
    }

    /// Waits for something to read, or the end. Flushes first: the peer may wait for an answer.
    pub(crate) async fn wait(&mut self, phase: Phase, config: &Config) -> Result<(), Trouble> {
        self.flush(config).await?;
        self.answered = 0;
        let until = self.watch.enter(phase, &config.deadlines).await;
        let waited = self.watch.guard(&until, self.stream.readable()).await;
        self.watch.end(&until, waited)?;
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
            let tried = now(pin!(self.stream.read(buffer))).await;
            match tried {
                Some(done) => {
                    let n = done?;
                    if phase == Phase::Body {
                        self.watch.count(n);
                    }
                    self.drained = n < buffer.len();
                    self.ended = n == 0;
                    return Ok(n);
                }
                None => self.drained = true,
            }
        }
    }

    /// Writes out what was gathered, and lets every other task that is ready run.
    pub(crate) async fn give_way(&mut self, config: &Config) -> Result<(), Trouble> {
        self.flush(config).await?;
        self.answered = 0;
        yield_now().await.map_err(|interrupt| Trouble::Failed(interrupt.into()))
    }

    /// Reads what is there, and waits for nothing.
    pub(crate) async fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let tried = now(pin!(self.stream.read(buffer))).await;
        let Some(done) = tried else {
            self.drained = true;
            return Ok(0);
        };
        let n = done?;
        self.drained = n < buffer.len();
        self.ended = n == 0;
        Ok(n)
    }

    /// Writes all that was gathered.
    #[inline]
    pub(crate) fn flush<'a>(
        &'a mut self,
        config: &'a Config,
    ) -> impl Future<Output = Result<(), Trouble>> + use<'a, S> {
        self.write_through(&[], config)
    }

    /// Writes all that was gathered and then `more`, which is not copied.
    pub(crate) async fn write_through(
        &mut self,
        more: &[u8],
        config: &Config,
    ) -> Result<(), Trouble> {
        let mut at = 0;
        while !self.out.is_empty() || at < more.len() {
            let (first, rest) = (&self.out[..], &more[at..more.len().min(at + PIECE)]);
            let bufs = [IoSlice::new(first), IoSlice::new(rest)];
            let stream = &mut self.stream;
            let tried = match (first, rest) {
                (_, []) => now(pin!(stream.write(first))).await,
                ([], _) => now(pin!(stream.write(rest))).await,
                _ => now(pin!(stream.write_vectored(&bufs))).await,
            };
            let tried = tried.transpose()?;
            let n = match tried {
                Some(n) => n,
                None => {
                    let write = stream.write_vectored(&bufs);
                    // In a box: most connections never wait for this.
                    let guarded = Box::pin(self.watch.guard_write(&config.deadlines, write));
                    let written = guarded.await;
                    Box::pin(Watch::end_write(stream, &bufs, written)).await?
                }
            };
            if n == 0 {
                return Err(Trouble::Failed(ErrorKind::WriteZero.into()));
            }
            // Noted at once: whoever is dropped in the next wait has not written it twice.
            let gathered = n.min(self.out.len());
            self.out.drain(..gathered);
            at += n - gathered;
        }
        Ok(())
    }

    /// While a handler waits for something else: writes what can be written without waiting, so
    /// that answers before its own are not held back. A failure is met again by the next write.
    fn nudge(&mut self, cx: &mut Context<'_>) {
        if self.out.is_empty() {
            return;
        }
        let written = pin!(self.stream.write(&self.out)).poll(cx);
        if let Poll::Ready(Ok(n)) = written {
            self.out.drain(..n);
        }
    }

    /// The text of the `Date` field. Traps once a second; when the time of day is set, what it says
    /// is late by less than that.
    #[inline]
    pub(crate) async fn date(&mut self, config: &Config) -> [u8; DATE] {
        let now = self.watch.now();
        if now.is_none_or(|now| now >= self.dated) {
            let left = config.date.set(wall_clock().await);
            self.dated = now.map_or(Time::ZERO, |now| now + left);
        }
        config.date.text()
    }

    /// Takes a buffer for what is to be written, if there is none.
    #[inline]
    pub(crate) fn take_buffer(&mut self, config: &Config) {
        if self.out.capacity() == 0 {
            self.out = config.pool.take_write();
        }
    }

    pub(crate) fn give_buffer(&mut self, config: &Config) {
        config.pool.give_write(std::mem::take(&mut self.out));
    }

    /// Ends the stream so that the peer sees that something is missing.
    pub(crate) fn reset(&mut self) {
        // It ends one way or another.
        let _ = self.stream.reset();
    }

    pub(crate) fn shutdown(&mut self) -> io::Result<()> {
        self.stream.shutdown()
    }
}

/// Runs a handler's work. Whenever it waits for something other than this wire, what was gathered
/// goes out.
///
/// The work is pinned by the caller: moved in here it would be in the task twice.
pub(crate) async fn attend<S: Stream, T>(
    wire: &RefCell<Wire<S>>,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> T {
    poll_fn(|cx| {
        let polled = work.as_mut().poll(cx);
        if polled.is_pending()
            && let Ok(mut wire) = wire.try_borrow_mut()
        {
            wire.nudge(cx);
        }
        polled
    })
    .await
}
