//! The pace of a peer: how much it sends or takes while it is waited for, and how long that wait
//! may last.
//!
//! It keeps no bytes.

use std::future::Future;
use std::io::{self, IoSlice};
use std::time::Duration;

use traps::{ConnectionDeadline, Guard, Interruptible, Kind, Time, take_budget, yield_now};

use crate::attempt::now;
use crate::min_rate::MinRate;
use crate::stream::Stream;

/// How often a write that found no room is tried again within the longest wait.
const TRIES: u32 = 8;

/// How fast a peer is, in one direction.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Made by the first wait; most peers are never waited for.
    rate: Option<Box<MinRate>>,
}

impl Pace {
    /// How long the peer may let us wait now, if it is to keep to that rate.
    pub(crate) fn patience(&mut self, least: MinRate) -> Duration {
        let rate = self.rate.get_or_insert_with(|| Box::new(least));
        rate.before_wait().unwrap_or(Duration::MAX)
    }

    /// So many bytes came, or were taken.
    pub(crate) fn count(&mut self, bytes: usize) {
        if let Some(rate) = &mut self.rate {
            rate.after_wait(Duration::ZERO, bytes);
        }
    }

    /// A wait begins. It counts until what this gives is dropped, also by a handler that waits for
    /// something else beside it.
    pub(crate) fn waits<'w>(&'w mut self, deadline: &'w ConnectionDeadline) -> Waits<'w> {
        Waits { pace: self, deadline, begun: deadline.now() }
    }
}

/// A wait for the peer.
pub(crate) struct Waits<'w> {
    pace: &'w mut Pace,
    deadline: &'w ConnectionDeadline,
    begun: Time,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if let Some(rate) = &mut self.pace.rate {
            rate.after_wait(self.deadline.now().since(self.begun), 0);
        }
    }
}

/// Writes some of the slices, waiting until there is room. `None`: the peer took too little.
///
/// Tries again within the span, and not only when there is said to be room: the system says so when
/// a third of its buffer is free, and says nothing of what became free right after a write that
/// filled it.
pub(crate) async fn write_until_stalled<S: Stream>(
    stream: &mut S,
    bufs: &[IoSlice<'_>],
    (deadline, least): (&ConnectionDeadline, MinRate),
    pace: &mut Pace,
) -> io::Result<Option<usize>> {
    let window = least.window();
    loop {
        if let Some(done) = write_now(stream, bufs).await? {
            let n = done?;
            pace.count(n);
            return Ok(Some(n));
        }
        let patience = pace.patience(least.clone());
        if patience.min(window).is_zero() {
            return Ok(None);
        }
        let again = deadline.now() + patience.min(window / TRIES);
        let wait = pace.waits(deadline);
        let written = guard(deadline, ("write", again), stream.write_vectored(bufs)).await;
        drop(wait);
        match written {
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
            Ok(n) => {
                pace.count(n);
                return Ok(Some(n));
            }
        }
    }
}

/// Runs `wait` until then at most, in that phase.
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

/// Whether that error of a guard with a limit says that its own deadline passed. No other
/// interrupt that is seen here has this kind.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    error.interrupt().is_some_and(|interrupt| interrupt.kind() == Kind::TaskTimeout)
}
