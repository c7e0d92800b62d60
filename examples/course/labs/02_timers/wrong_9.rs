// says: line 15: `next` returned 20ms; the soonest timer, `butter`, is for 20.3ms
// demand: `next` returns the time of the soonest timer.
//! Yours: the timers, the soonest first.

use std::collections::BTreeMap;
use std::time::Duration;

use super::kernel::Time;

/// The key of a timer: its millisecond, and how many were set.
pub type Timer = (u128, u64);

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
        let timer = (at.0.as_millis(), self.set);
        self.entries.insert(timer, name);
        timer
    }

    /// Removes the timer with that key, if it is still set.
    pub fn clear(&mut self, timer: Timer) {
        self.entries.remove(&timer);
    }

    /// Returns the time of the soonest timer.
    pub fn next(&self) -> Option<Time> {
        self.entries.keys().next().map(|(at, _)| Time(Duration::from_millis(*at as u64)))
    }

    /// Removes the soonest timer if it is due, and returns its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let entry =
            self.entries.first_entry().filter(|entry| entry.key().0 <= now.0.as_millis())?;
        Some(entry.remove())
    }
}
