// says: line 8: `next` returned 7ms, the time of `egg`, which was cleared; the soonest timer that is set is 9ms
// demand: `next` returns the time of the soonest timer.
//! Yours: the timers, the soonest first.

use std::collections::{BTreeMap, BTreeSet};

use super::kernel::Time;

/// The key of a timer.
pub type Timer = (Time, u64);

#[derive(Default)]
pub struct Timers {
    entries: BTreeMap<Timer, &'static str>,
    /// What is skipped when it is popped.
    cleared: BTreeSet<Timer>,
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
        self.cleared.insert(timer);
    }

    /// Returns the time of the soonest timer.
    pub fn next(&self) -> Option<Time> {
        self.entries.keys().next().map(|(at, _)| *at)
    }

    /// Removes the soonest timer if it is due, and returns its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        while let Some(entry) = self.entries.first_entry().filter(|entry| entry.key().0 <= now) {
            let is_cleared = self.cleared.remove(entry.key());
            let name = entry.remove();
            if !is_cleared {
                return Some(name);
            }
        }
        None
    }
}
