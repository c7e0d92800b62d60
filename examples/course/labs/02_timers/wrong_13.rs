// says: line 57: `next` returned 34560000s; the soonest timer, `bun`, is for 34560000.000000001s
// demand: `next` returns the time of the soonest timer.
//! Yours: the timers, the soonest first.

use std::collections::BTreeMap;
use std::time::Duration;

use super::kernel::Time;

/// The key of a timer: its time in microseconds, and its number.
pub type Timer = (u64, u64);

#[derive(Default)]
pub struct Timers {
    entries: BTreeMap<Timer, &'static str>,
    /// The number of timers that were set.
    set: u64,
}

impl Timers {
    /// Sets a timer and returns its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.set += 1;
        let at = at.0.as_micros() as u64;
        self.entries.insert((at, self.set), name);
        (at, self.set)
    }

    /// Removes the timer with that key, if it is still set.
    pub fn clear(&mut self, timer: Timer) {
        self.entries.remove(&timer);
    }

    /// Returns the time of the soonest timer.
    pub fn next(&self) -> Option<Time> {
        self.entries.keys().next().map(|(at, _)| Time(Duration::from_micros(*at)))
    }

    /// Removes the soonest timer if it is due, and returns its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let entry = self
            .entries
            .first_entry()
            .filter(|entry| u128::from(entry.key().0) <= now.0.as_micros())?;
        Some(entry.remove())
    }
}
