// says: line 587: `corn` is lost: line 586 cleared a `corn` that was gone, so it must remove nothing; two timers must not have the same key
// demand: A key clears its timer, and no other.
//! Yours: the timers, the soonest first.

use super::kernel::Time;

/// Two timers with the same time and name have the same key.
pub type Timer = (Time, &'static str);

#[derive(Default)]
pub struct Timers {
    /// In the order of their times.
    entries: Vec<Timer>,
}

impl Timers {
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        let place = self.entries.partition_point(|entry| entry.0 <= at);
        self.entries.insert(place, (at, name));
        (at, name)
    }

    pub fn clear(&mut self, timer: Timer) {
        if let Some(place) = self.entries.iter().rposition(|entry| *entry == timer) {
            self.entries.remove(place);
        }
    }

    pub fn next(&self) -> Option<Time> {
        self.entries.first().map(|entry| entry.0)
    }

    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        self.next().filter(|at| *at <= now)?;
        Some(self.entries.remove(0).1)
    }
}
