//! The timers, the soonest first.

use std::collections::BTreeMap;

use super::*;

/// The owner of a timer: a sleep, or a scope.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    Sleep(TaskId),
    /// A scope of a task.
    Scope(TaskId, u32),
}

/// A timer: its time, and its number. Of equal times, the lower number fires first.
pub(super) type Timer = (Time, u64);

/// A map and not a heap, because a timer can be cleared before its time.
#[derive(Default)]
pub(super) struct Timers {
    entries: BTreeMap<Timer, Owner>,
    set: u64,
}

impl Timers {
    pub(super) fn set(&mut self, at: Time, owner: Owner) -> Timer {
        self.set += 1;
        self.entries.insert((at, self.set), owner);
        (at, self.set)
    }

    pub(super) fn clear(&mut self, timer: Timer) {
        self.entries.remove(&timer);
    }

    /// Returns the time of the next timer.
    pub(super) fn next(&self) -> Option<Time> {
        self.entries.keys().next().map(|(at, _)| *at)
    }

    /// Takes the next timer if it is due.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Owner)> {
        let entry = self.entries.first_entry().filter(|entry| entry.key().0 <= now)?;
        let at = entry.key().0;
        Some((at, entry.remove()))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
