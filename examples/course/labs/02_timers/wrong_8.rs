// says: line 8: `next` gave 7ms, the time of `egg`, which was cleared; the soonest timer that is set is 9ms
// demand: `next` gives the time of the soonest timer.
//! Yours: the timers, the soonest first.

use std::collections::{BTreeMap, BTreeSet};

use super::kernel::Time;

/// What names a timer.
pub type Timer = (Time, u64);

#[derive(Default)]
pub struct Timers {
    entries: BTreeMap<Timer, &'static str>,
    /// What is skipped when it is popped.
    cleared: BTreeSet<Timer>,
    /// How many were set.
    set: u64,
}

impl Timers {
    /// Sets a timer, and gives its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.set += 1;
        self.entries.insert((at, self.set), name);
        (at, self.set)
    }

    /// Takes back that timer, and no other.
    pub fn clear(&mut self, timer: Timer) {
        self.cleared.insert(timer);
    }

    /// When the soonest is due.
    pub fn next(&self) -> Option<Time> {
        self.entries.keys().next().map(|(at, _)| *at)
    }

    /// Removes the soonest if it is due, and gives its name.
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
