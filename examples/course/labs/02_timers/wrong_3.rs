// says: line 8: `pop` gave nothing at 10ms, but `egg` is due: a timer is due at its time, 10ms, and after it
// demand: `pop` gives what is due, the soonest first.
//! Yours: the timers, the soonest first.

use std::collections::BTreeMap;

use super::kernel::Time;

/// What names a timer.
pub type Timer = (Time, u64);

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
        self.entries.insert((at, self.set), name);
        (at, self.set)
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
        let is_due = self.next().is_some_and(|at| at < now);
        is_due.then(|| self.entries.pop_first().map(|(_, name)| name)).flatten()
    }
}
