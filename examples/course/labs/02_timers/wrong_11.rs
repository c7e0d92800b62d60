// says: line 42: `fig` is lost: `clear fig` was for another timer of that name; two timers with equal names are two timers
// demand: A key clears its timer, and no other.
//! Yours: the timers, the soonest first.

use std::collections::BTreeMap;

use super::kernel::Time;

/// The key of a timer: its name.
pub type Timer = &'static str;

#[derive(Default)]
pub struct Timers {
    entries: BTreeMap<(Time, u64), &'static str>,
    /// The number of timers that were set.
    set: u64,
}

impl Timers {
    /// Sets a timer and returns its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.set += 1;
        self.entries.insert((at, self.set), name);
        name
    }

    /// Removes the timer with that key, if it is still set.
    pub fn clear(&mut self, timer: Timer) {
        self.entries.retain(|_, name| *name != timer);
    }

    /// Returns the time of the soonest timer.
    pub fn next(&self) -> Option<Time> {
        self.entries.keys().next().map(|(at, _)| *at)
    }

    /// Removes the soonest timer if it is due, and returns its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let entry = self.entries.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }
}
