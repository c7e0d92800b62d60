// says: line 63: `next` returned 34560000.000000003s; the soonest timer, `nut`, is for 34560000.000000002s
// demand: `next` returns the time of the soonest timer.
//! Yours: the timers, the soonest first.

use super::kernel::Time;
use std::collections::BTreeMap;

pub type Timer = (u128, u64);

#[derive(Default)]
pub struct Timers {
    entries: BTreeMap<Timer, (Time, &'static str)>,
    count: u64,
}

impl Timers {
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.count += 1;
        let key = (at.0.as_micros(), self.count);
        self.entries.insert(key, (at, name));
        key
    }

    pub fn clear(&mut self, timer: Timer) {
        self.entries.remove(&timer);
    }

    pub fn next(&self) -> Option<Time> {
        self.entries.values().next().map(|(at, _)| *at)
    }

    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let entry = self.entries.first_entry()?;
        if entry.get().0 > now {
            return None;
        }
        Some(entry.remove().1)
    }
}
