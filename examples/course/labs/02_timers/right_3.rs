//! Yours: the timers, a map for each time. A key tells whether its timer is set.

use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use super::kernel::Time;

/// A timer: its time, its number, and its name.
type Entry = (Time, usize, &'static str);

/// The key of a timer: it does not keep the timer.
pub struct Timer(Weak<Entry>);

#[derive(Default)]
pub struct Timers {
    entries: BTreeMap<Time, BTreeMap<usize, Rc<Entry>>>,
    set: usize,
}

impl Timers {
    /// Sets a timer and returns its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.set += 1;
        let timer = Rc::new((at, self.set, name));
        let key = Timer(Rc::downgrade(&timer));
        self.entries.entry(at).or_default().insert(self.set, timer);
        key
    }

    /// Removes the timer with that key, if it is still set.
    pub fn clear(&mut self, timer: Timer) {
        let Some(timer) = timer.0.upgrade() else { return };
        self.remove(timer.0, timer.1);
    }

    fn remove(&mut self, at: Time, set: usize) -> Option<&'static str> {
        let equals = self.entries.get_mut(&at)?;
        let timer = equals.remove(&set)?;
        if equals.is_empty() {
            self.entries.remove(&at);
        }
        Some(timer.2)
    }

    /// Returns the time of the soonest timer.
    pub fn next(&self) -> Option<Time> {
        self.entries.first_key_value().map(|(at, _)| *at)
    }

    /// Removes the soonest timer if it is due, and returns its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let (at, equals) = self.entries.first_key_value().filter(|(at, _)| **at <= now)?;
        let (at, set) = (*at, *equals.first_key_value()?.0);
        self.remove(at, set)
    }
}
