//! Everything that has a time, the soonest first.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Add;
use std::task::Waker;
use std::time::Duration;

/// A point on the clock of the kernel: the time since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>2}.{:06}", self.0.as_secs(), self.0.subsec_micros())
    }
}

/// A timer: when, and its number in the order of setting. Equal times fire in that order.
type Timer = (Time, u64);

/// An ordered map, because a timer can also be cleared before its time.
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

    /// The time at which the next one is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.entries.keys().next().map(|(at, _)| *at)
    }

    /// Takes the next one that is due.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Waker)> {
        let entry = self.entries.first_entry().filter(|entry| entry.key().0 <= now)?;
        let at = entry.key().0;
        Some((at, entry.remove()))
    }
}
