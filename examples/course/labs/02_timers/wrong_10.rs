// says: line 33: `oat` is lost: `clear rye` came after `rye` was gone, so it must remove nothing; two timers must not have the same key
// demand: A key clears its timer, and no other.
//! Yours: the timers, the soonest first.

use std::collections::BTreeMap;

use super::kernel::Time;

/// What names a timer.
pub type Timer = (Time, u64);

#[derive(Default)]
pub struct Timers {
    entries: BTreeMap<Timer, &'static str>,
}

impl Timers {
    /// Sets a timer, and gives its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        // One more than the last of these timers.
        let equal = self.entries.range((at, 0)..=(at, u64::MAX));
        let timer = (at, equal.last().map_or(0, |((_, number), _)| number + 1));
        self.entries.insert(timer, name);
        timer
    }

    /// Takes back that timer, and no other.
    pub fn clear(&mut self, timer: Timer) {
        self.entries.remove(&timer);
    }

    /// When the soonest is due.
    pub fn next(&self) -> Option<Time> {
        self.entries.keys().next().map(|(at, _)| *at)
    }

    /// Removes the soonest if it is due, and gives its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let entry = self.entries.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }
}
