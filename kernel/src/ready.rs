//! The ready queue: who runs in this turn, and who has become ready meanwhile.

use std::mem;

/// Tasks that are ready, in the order in which they became it.
#[derive(Default)]
pub(crate) struct ReadyQueue {
    /// Those of this turn, of which so many have had their run.
    now: Vec<u32>,
    taken: usize,
    /// Those of the next.
    next: Vec<u32>,
}

impl ReadyQueue {
    #[inline]
    pub(crate) fn push(&mut self, task: u32) {
        self.next.push(task);
    }

    /// All that are ready are to run in the turn that begins.
    pub(crate) fn begin_turn(&mut self) {
        self.now.drain(..self.taken);
        self.taken = 0;
        if self.now.is_empty() {
            mem::swap(&mut self.now, &mut self.next);
        } else {
            // The last turn ended with main.
            self.now.append(&mut self.next);
        }
    }

    /// The next one of this turn.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u32> {
        let task = *self.now.get(self.taken)?;
        self.taken += 1;
        Some(task)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.now.len() && self.next.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.now[self.taken..].iter().chain(&self.next).copied()
    }

    /// A task ends while it is ready. O(ready tasks).
    pub(crate) fn remove(&mut self, task: u32) {
        if let Some(place) = self.now[self.taken..].iter().position(|ready| *ready == task) {
            self.now.remove(self.taken + place);
        }
        self.next.retain(|ready| *ready != task);
    }
}
