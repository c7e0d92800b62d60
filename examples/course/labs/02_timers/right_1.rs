//! Yours: the timers, in a heap. A cleared timer stays in the heap until it is in front.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::kernel::Time;

/// The number of a timer.
pub struct Timer(u64);

#[derive(Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Time, u64, &'static str)>>,
    /// The numbers of the timers that are set.
    live: BTreeSet<u64>,
    count: u64,
}

impl Timers {
    /// Sets a timer and returns its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.count += 1;
        self.live.insert(self.count);
        self.heap.push(Reverse((at, self.count, name)));
        Timer(self.count)
    }

    /// Removes the timer with that key, if it is still set.
    pub fn clear(&mut self, timer: Timer) {
        self.live.remove(&timer.0);
        self.sweep();
    }

    /// Returns the time of the soonest timer.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Removes the soonest timer if it is due, and returns its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        self.heap.peek().filter(|Reverse((at, ..))| *at <= now)?;
        let Reverse((_, number, name)) = self.heap.pop()?;
        self.live.remove(&number);
        self.sweep();
        Some(name)
    }

    /// Removes what was cleared from the front.
    fn sweep(&mut self) {
        while self.heap.peek().is_some_and(|Reverse((_, number, _))| !self.live.contains(number)) {
            self.heap.pop();
        }
    }
}
