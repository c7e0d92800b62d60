//! The rate of a peer: how much it sends or takes during our waits, and how long a wait may last.
//!
//! This module keeps no bytes.

use std::cell::Cell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::time::Duration;

use traps::internal::take_budget;
use traps::{ConnectionDeadline, Guard, Interruptible, Kind, Time, yield_now};

use crate::min_rate::MinRate;
use crate::stream::Stream;
use crate::try_io::now;

/// The number of retries, within the longest wait, of a write that found no room.
const TRIES: u32 = 8;

/// A meter of the rate at which a peer sends or takes bytes, in one direction.
#[derive(Debug, Default)]
pub(crate) struct RateMeter {
    /// The rate of the peer so far. Set by the first wait, because most peers cause no wait.
    rate: Option<Box<MinRate>>,
}

impl RateMeter {
    /// Returns the longest wait that still satisfies the minimum rate `least`. This rate can differ
    /// from the rate of the last call, but its window must be the same.
    pub(crate) fn patience(&mut self, least: MinRate) -> Duration {
        let rate = match &mut self.rate {
            Some(rate) => {
                rate.ask_for(&least);
                rate
            }
            None => self.rate.insert(Box::new(least)),
        };
        rate.before_wait().unwrap_or(Duration::MAX)
    }

    /// Whether the peer was too slow for the rate that was asked for last.
    pub(crate) fn is_late(&self) -> bool {
        self.rate.as_ref().is_some_and(|rate| rate.before_wait() == Some(Duration::ZERO))
    }

    /// Records `bytes` more bytes that the peer has sent or taken.
    pub(crate) fn count(&mut self, bytes: usize) {
        if let Some(rate) = &mut self.rate {
            rate.after_wait(Duration::ZERO, bytes);
        }
    }

    /// Begins a wait for the peer, which lasts until the result is dropped. The wait counts even
    /// while the handler waits for something else at the same time.
    pub(crate) fn waits<'w>(
        &'w mut self,
        deadline: &'w ConnectionDeadline,
        seen: Option<&'w Slowness>,
    ) -> Waits<'w> {
        let begun = deadline.now();
        if let Some(seen) = seen {
            seen.since.set(Some(begun));
        }
        Waits { meter: self, deadline, begun, seen }
    }
}

/// A wait for the peer. Dropping it records its length.
pub(crate) struct Waits<'w> {
    meter: &'w mut RateMeter,
    deadline: &'w ConnectionDeadline,
    begun: Time,
    seen: Option<&'w Slowness>,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let waited = self.deadline.now().since(self.begun);
        if let Some(rate) = &mut self.meter.rate {
            rate.after_wait(waited, 0);
        }
        if let Some(seen) = self.seen {
            seen.since.set(None);
            seen.waited.set(seen.waited.get() + waited);
        }
    }
}

/// The slowness of a peer, visible to other tasks while a task waits for the peer.
#[derive(Debug, Default)]
pub(crate) struct Slowness {
    /// The number of bytes that have moved since the peer was last fast.
    moved: Cell<u64>,
    /// The sum of the waits since the peer was last fast, without the present wait.
    waited: Cell<Duration>,
    since: Cell<Option<Time>>,
    /// Whether the peer must make room for other peers: it gets no further wait.
    pub(crate) gives_way: Cell<bool>,
}

impl Slowness {
    /// Records that `bytes` more bytes have moved. The peer counts as fast whenever `enough` bytes
    /// have moved.
    pub(crate) fn count(&self, bytes: usize, enough: u64) {
        self.moved.set(self.moved.get() + bytes as u64);
        if self.moved.get() >= enough {
            self.moved.set(0);
            self.waited.set(Duration::ZERO);
        }
    }

    /// Returns how long the peer has been slow. Returns zero if no task waits for it now.
    pub(crate) fn slow_for(&self, now: Time) -> Duration {
        self.since.get().map_or(Duration::ZERO, |since| self.waited.get() + now.since(since))
    }
}

/// Writes some of the slices, and waits until there is room. Returns `None` if the peer took too
/// few bytes, if it must make room for other peers, or if it takes nothing until the time that
/// `last` returns for the beginning of the wait.
///
/// Also tries again at intervals within the limit. The system reports room only when a third of its
/// buffer is free, and sends no event if room appears immediately after a write fills the buffer.
pub(crate) async fn write_until_stalled<S: Stream>(
    stream: &mut S,
    bufs: &[IoSlice<'_>],
    (deadline, least): (&ConnectionDeadline, MinRate),
    (meter, seen): (&mut RateMeter, Option<&Slowness>),
    last: impl Fn(Time) -> Time,
) -> io::Result<Option<usize>> {
    let (window, mut begun) = (least.window(), None);
    loop {
        if let Some(done) = write_now(stream, bufs).await? {
            let n = done?;
            meter.count(n);
            return Ok(Some(n));
        }
        let now = deadline.now();
        let last = last(*begun.get_or_insert(now)).since(now);
        let patience = meter.patience(least.clone()).min(last);
        let gives_way = seen.is_some_and(|it| it.gives_way.get());
        if patience.min(window).is_zero() || gives_way {
            return Ok(None);
        }
        let again = now + patience.min(window / TRIES);
        let wait = meter.waits(deadline, seen);
        let written = guard(deadline, ("write", again), stream.write_vectored(bufs)).await;
        drop(wait);
        match written {
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
            Ok(n) => {
                meter.count(n);
                return Ok(Some(n));
            }
        }
    }
}

/// Waits until the stream holds back no bytes. If that takes a wait, calls `begin` with the time;
/// `begin` returns the end of the wait, and a value to drop after it. Returns `None` if that end
/// has passed.
pub(crate) async fn flush_within<S: Stream, B>(
    stream: &mut S,
    deadline: &ConnectionDeadline,
    begin: impl FnOnce(Time) -> (Time, B),
) -> io::Result<Option<()>> {
    // A stream that holds nothing back pays for no guard.
    if let Some(flushed) = now(|| stream.flush()).await {
        return flushed.map(Some);
    }
    let (until, _begun) = begin(deadline.now());
    match guard(deadline, ("write", until), stream.flush()).await {
        Err(error) if is_timeout(&error) => Ok(None),
        flushed => flushed.map(Some),
    }
}

/// Runs `wait` as the phase `phase` of the deadline, until `until` at the latest.
#[track_caller]
pub(crate) fn guard<'d, T, F>(
    deadline: &'d ConnectionDeadline,
    (phase, until): (&'static str, Time),
    wait: F,
) -> Guard<'d, F>
where
    F: Future<Output = io::Result<T>>,
{
    deadline.phase(phase);
    match until {
        // Pass a duration, because a guard until `Time::NEVER` opens no scope, and then the timeout
        // of an outer scope would look like that of the guard.
        Time::NEVER => deadline.guard(Duration::MAX, wait),
        until => deadline.guard(until, wait),
    }
}

/// Writes without waiting. Returns `None` if the write would wait.
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
        // Other parts of the task have spent the budget, so the peer is not at fault.
        yield_now().await?;
    }
}

/// Returns whether this error of a guard means that the guard's own deadline passed. No other
/// interrupt that arrives here has this kind.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    error.interrupt().is_some_and(|interrupt| interrupt.kind() == Kind::TaskTimeout)
}
