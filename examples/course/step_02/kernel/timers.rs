//! The timers, the soonest first.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::task::Waker;

use super::*;

/// A timer: its time, and its number. Of equal times, the lower number fires first.
type Timer = (Time, u64);

/// A map and not a heap, because a timer can be cleared before its time.
#[derive(Default)]
pub(super) struct Timers {
    entries: BTreeMap<Timer, Waker>,
    set: u64,
    /// The last reading of the clock.
    pub(super) now: Time,
}

thread_local! {
    /// A future finds its kernel's timers here.
    pub(super) static TIMERS: RefCell<Timers> = RefCell::default();
}

impl Timers {
    pub(super) fn set(&mut self, at: Time, waker: Waker) {
        self.set += 1;
        self.entries.insert((at, self.set), waker);
    }

    /// Returns the time of the next timer.
    pub(super) fn next(&self) -> Option<Time> {
        self.entries.keys().next().map(|(at, _)| *at)
    }

    /// Takes the next timer if it is due.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Waker)> {
        let entry = self.entries.first_entry().filter(|entry| entry.key().0 <= now)?;
        let at = entry.key().0;
        Some((at, entry.remove()))
    }
}
