//! The clock of the simulated machine: it stands still until somebody moves it.
//!
//! Reads no real clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use traps::Time;

/// The virtual clock: a handle for code that wants to spend time without waiting, on any thread.
#[derive(Clone, Debug, Default)]
pub struct SimClock(Arc<AtomicU64>);

impl SimClock {
    /// Lets `span` pass while whoever calls this holds the CPU.
    pub fn advance(&self, span: Duration) {
        let advance = |now| Some((Time::from_micros(now) + span).as_micros());
        // Another thread may do so too.
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, advance);
    }

    pub(super) fn reach(&self, time: Time) {
        self.0.fetch_max(time.as_micros(), Ordering::AcqRel);
    }

    /// The clock's reading.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::Acquire))
    }
}
