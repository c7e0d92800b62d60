// says: line 42: `fig` and `plum` are both due at 90.01s, and `fig` was set first; `pop` returned `plum` first, as if `clear fig` had removed this timer, and not the other one of that name; two timers with equal names are two timers
// demand: A key clears its timer, and no other.
//! Yours: the timers, a queue for each time.

use std::collections::{BTreeMap, VecDeque};

use super::kernel::Time;

/// The key of a timer.
pub type Timer = (Time, &'static str);

/// The names for each time, in the order of setting. No queue is empty.
#[derive(Default)]
pub struct Timers(BTreeMap<Time, VecDeque<&'static str>>);

impl Timers {
    /// Sets a timer and returns its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.0.entry(at).or_default().push_back(name);
        (at, name)
    }

    /// Removes the timer with that key, if it is still set.
    pub fn clear(&mut self, (at, name): Timer) {
        let Some(names) = self.0.get_mut(&at) else { return };
        if let Some(place) = names.iter().position(|each| *each == name) {
            names.remove(place);
        }
        if names.is_empty() {
            self.0.remove(&at);
        }
    }

    /// Returns the time of the soonest timer.
    pub fn next(&self) -> Option<Time> {
        self.0.keys().next().copied()
    }

    /// Removes the soonest timer if it is due, and returns its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let mut first = self.0.first_entry().filter(|entry| *entry.key() <= now)?;
        let name = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        name
    }
}
