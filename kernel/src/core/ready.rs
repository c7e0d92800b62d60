//! The ready queue: the tasks that run in this turn, and those that have become ready since it
//! began.

use std::mem;

/// Ready tasks, in the order in which they became ready.
#[derive(Default)]
pub(crate) struct ReadyQueue {
    /// The tasks of this turn; the first `taken` of them have run.
    pub(super) now: Vec<u32>,
    taken: usize,
    /// The tasks of the next turn.
    next: Vec<u32>,
}

impl ReadyQueue {
    #[inline]
    pub(crate) fn push(&mut self, task: u32) {
        self.next.push(task);
    }

    /// Starts a turn, in which all tasks that are ready now will run.
    pub(crate) fn begin_turn(&mut self) {
        self.now.drain(..mem::take(&mut self.taken));
        if self.now.is_empty() {
            mem::swap(&mut self.now, &mut self.next);
        } else {
            // Main ended during the last turn.
            self.now.append(&mut self.next);
        }
    }

    /// The next task of this turn.
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

    /// Removes a task that ends while it is ready. O(ready tasks).
    pub(crate) fn remove(&mut self, task: u32) {
        if let Some(place) = self.now[self.taken..].iter().position(|ready| *ready == task) {
            self.now.remove(self.taken + place);
        }
        self.next.retain(|ready| *ready != task);
    }
}
