//! The queue of ready tasks.

use std::mem;
use traps::internal::table::TaskIndex;

/// The queue of ready tasks, in the order in which they became ready.
#[derive(Default)]
pub(crate) struct ReadyQueue {
    /// The tasks of this turn. The first `taken` of them have run.
    pub(super) now: Vec<TaskIndex>,
    taken: usize,
    /// The tasks of the next turn.
    next: Vec<TaskIndex>,
    /// The turn of the last run, for the view of the state.
    pub(crate) ran_in: Option<u64>,
}

impl ReadyQueue {
    #[inline]
    pub(crate) fn push(&mut self, task: TaskIndex) {
        self.next.push(task);
    }

    /// Starts a turn, in which all tasks that are ready now will run.
    #[inline]
    pub(crate) fn begin_turn(&mut self) {
        let taken = mem::take(&mut self.taken);
        if taken == self.now.len() {
            self.now.clear();
            mem::swap(&mut self.now, &mut self.next);
        } else {
            // Main ended during the last turn.
            self.now.drain(..taken);
            self.now.append(&mut self.next);
        }
    }

    /// Takes the next task of this turn.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<TaskIndex> {
        let task = *self.now.get(self.taken)?;
        self.taken += 1;
        Some(task)
    }

    /// Returns the tasks of this turn that have not run, and the tasks of the next turn.
    pub(crate) fn parts(&self) -> (&[TaskIndex], &[TaskIndex]) {
        (&self.now[self.taken..], &self.next)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.now.len() && self.next.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskIndex> {
        self.now[self.taken..].iter().chain(&self.next).copied()
    }

    /// Removes a task that ends while it is ready. O(the tasks that became ready after it): tasks
    /// are dropped newest first, so the search begins at the end.
    pub(crate) fn remove(&mut self, task: TaskIndex) {
        let is_it = |ready: &TaskIndex| *ready == task;
        if let Some(place) = self.next.iter().rposition(is_it) {
            self.next.remove(place);
        } else if let Some(place) = self.now[self.taken..].iter().rposition(is_it) {
            self.now.remove(self.taken + place);
        }
    }
}
