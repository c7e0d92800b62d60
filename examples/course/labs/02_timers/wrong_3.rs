// says: line 8: `pop` returned nothing at 10ms, but `egg` is due: a timer is due at its time, 10ms, and after it
// demand: `pop` returns what is due, the soonest first.
//! Yours: the timers, the soonest first.

use std::collections::BTreeMap;

use super::kernel::Time;

/// The key of a timer.
pub type Timer = (Time, u64);

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
        self.entries.insert((at, self.set), name);
        (at, self.set)
    }

    /// Removes the timer with that key, if it is still set.
    pub fn clear(&mut self, timer: Timer) {
        self.entries.remove(&timer);
    }

    /// Returns the time of the soonest timer.
    pub fn next(&self) -> Option<Time> {
        self.entries.keys().next().map(|(at, _)| *at)
    }

    /// Removes the soonest timer if it is due, and returns its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let is_due = self.next().is_some_and(|at| at < now);
        is_due.then(|| self.entries.pop_first().map(|(_, name)| name)).flatten()
    }
}
