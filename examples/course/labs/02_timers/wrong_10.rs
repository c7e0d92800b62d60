// says: line 33: `oat` is lost: line 32 cleared a `rye` that was gone, so it must remove nothing; two timers must not have the same key
// demand: A key clears its timer, and no other.
//! Yours: the timers, the soonest first.

use std::collections::BTreeMap;

use super::kernel::Time;

/// The key of a timer.
pub type Timer = (Time, u64);

#[derive(Default)]
pub struct Timers {
    entries: BTreeMap<Timer, &'static str>,
}

impl Timers {
    /// Sets a timer and returns its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        // One more than the last of these timers.
        let equal = self.entries.range((at, 0)..=(at, u64::MAX));
        let timer = (at, equal.last().map_or(0, |((_, number), _)| number + 1));
        self.entries.insert(timer, name);
        timer
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
        let entry = self.entries.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }
}
