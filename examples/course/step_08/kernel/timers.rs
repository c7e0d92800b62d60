//! Everything that has a time, the soonest first.

use std::collections::BTreeMap;

use super::*;

/// The owner of a timer: a sleep, or a scope.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    Sleep(TaskId),
    /// A scope of a task.
    Scope(TaskId, u32),
}

/// A timer: when, and its number in the order of setting. Equal times fire in that order.
pub(super) type Timer = (Time, u64);

/// An ordered map, because a timer can also be cleared before its time.
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

    /// The time at which the next one is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.entries.keys().next().map(|(at, _)| *at)
    }

    /// Takes the next one that is due.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Owner)> {
        let entry = self.entries.first_entry().filter(|entry| entry.key().0 <= now)?;
        let at = entry.key().0;
        Some((at, entry.remove()))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
