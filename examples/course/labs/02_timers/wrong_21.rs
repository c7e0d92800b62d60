// says: line 591: `leek` is lost: it has been due since 1µs, and no `pop` returns it
// demand: `pop` returns what is due, the soonest first.
//! Yours: the timers, the soonest first.

use std::collections::BTreeMap;
use std::time::Duration;

use super::kernel::Time;

/// The key of a timer: its time, and its number.
pub type Timer = (Time, u64);

/// The timers that are due are looked for in the last day.
const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Default)]
pub struct Timers {
    set: BTreeMap<Timer, &'static str>,
    number: u64,
}

impl Timers {
    /// Sets a timer and returns its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.number += 1;
        self.set.insert((at, self.number), name);
        (at, self.number)
    }

    /// Removes the timer with that key, if it is still set.
    pub fn clear(&mut self, timer: Timer) {
        self.set.remove(&timer);
    }

    /// Returns the time of the soonest timer.
    pub fn next(&self) -> Option<Time> {
        self.set.keys().next().map(|(at, _)| *at)
    }

    /// Removes the soonest timer if it is due, and returns its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let is_due = |timer: &&Timer| timer.0 <= now && now.since(timer.0) < DAY;
        let due = *self.set.keys().find(is_due)?;
        self.set.remove(&due)
    }
}
