// says: line 70: `next` returned 34560000.000000005s; the soonest timer, `salt`, is for 34560000.000000004s
// demand: `next` returns the time of the soonest timer.
//! Yours: the timers, the soonest first.

use super::kernel::Time;

pub type Timer = u64;

#[derive(Default)]
pub struct Timers {
    /// In the order of their times, as floating-point numbers.
    entries: Vec<(Time, Timer, &'static str)>,
    set: u64,
}

impl Timers {
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        let nanos = |Time(at): Time| at.as_nanos() as f64;
        let place = self.entries.partition_point(|entry| nanos(entry.0) <= nanos(at));
        self.set += 1;
        self.entries.insert(place, (at, self.set, name));
        self.set
    }

    pub fn clear(&mut self, timer: Timer) {
        self.entries.retain(|entry| entry.1 != timer);
    }

    pub fn next(&self) -> Option<Time> {
        self.entries.first().map(|entry| entry.0)
    }

    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        self.next().filter(|at| *at <= now)?;
        Some(self.entries.remove(0).2)
    }
}
