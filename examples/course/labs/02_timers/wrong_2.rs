// says: line 11: `toast` and `butter` are both due at 20ms, and `toast` was set first; `pop` returned `butter` first
// demand: Equal times come in the order of setting.
//! Yours: the timers, the soonest first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::kernel::Time;

/// The key of a timer.
pub type Timer = (Time, Reverse<u64>);

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
        self.entries.insert((at, Reverse(self.set)), name);
        (at, Reverse(self.set))
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
