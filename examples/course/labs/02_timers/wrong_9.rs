// says: line 15: `next` gave 20ms; the soonest timer, `butter`, is for 20.3ms
// demand: `next` gives the time of the soonest timer.
//! Yours: the timers, the soonest first.

use std::collections::BTreeMap;
use std::time::Duration;

use super::kernel::Time;

/// What names a timer: its millisecond, and how many were set.
pub type Timer = (u128, u64);

#[derive(Default)]
pub struct Timers {
    entries: BTreeMap<Timer, &'static str>,
    /// How many were set.
    set: u64,
}

impl Timers {
    /// Sets a timer, and gives its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.set += 1;
        let timer = (at.0.as_millis(), self.set);
        self.entries.insert(timer, name);
        timer
    }

    /// Takes back that timer, and no other.
    pub fn clear(&mut self, timer: Timer) {
        self.entries.remove(&timer);
    }

    /// When the soonest is due.
    pub fn next(&self) -> Option<Time> {
        self.entries.keys().next().map(|(at, _)| Time(Duration::from_millis(*at as u64)))
    }

    /// Removes the soonest if it is due, and gives its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let entry =
            self.entries.first_entry().filter(|entry| entry.key().0 <= now.0.as_millis())?;
        Some(entry.remove())
    }
}
