//! The ready queue: who runs in this turn, and who became ready meanwhile.
//!
//! Two lists that change places, so that a run costs one addition. Knows nothing of tasks.

use std::mem;

use crate::task::NONE;

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

    /// All who are ready are to run in the turn that begins.
    pub(crate) fn begin_turn(&mut self) {
        if self.taken < self.now.len() {
            // The last turn ended with main.
            self.now.drain(..self.taken);
            self.now.append(&mut self.next);
        } else {
            self.now.clear();
            mem::swap(&mut self.now, &mut self.next);
            // They grow together: later turns allocate nothing that this one did not.
            self.next.reserve_exact(self.now.capacity());
        }
        self.taken = 0;
    }

    /// The next one of this turn; `NONE` in the place of one that was removed.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u32> {
        let task = *self.now.get(self.taken)?;
        self.taken += 1;
        Some(task)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.now.len() && self.next.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.now[self.taken..].iter().chain(&self.next).copied().filter(|task| *task != NONE)
    }

    /// A task was dropped while it was ready. O(n). Its place stays, empty.
    pub(crate) fn remove(&mut self, task: u32) {
        let all = self.now[self.taken..].iter_mut().chain(&mut self.next);
        if let Some(place) = all.into_iter().find(|ready| **ready == task) {
            *place = NONE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_becomes_ready_in_a_turn_runs_in_the_next_and_after_whom_the_last_left() {
        let mut queue = ReadyQueue::default();
        (1..=3).for_each(|task| queue.push(task));
        queue.begin_turn();
        assert_eq!(queue.take(), Some(1));
        queue.push(4);
        queue.remove(2);
        assert_eq!(queue.iter().collect::<Vec<_>>(), [3, 4]);
        queue.begin_turn();
        let left = std::iter::from_fn(|| queue.take()).collect::<Vec<_>>();
        assert_eq!(left, [NONE, 3, 4]);
        assert!(queue.is_empty());
    }
}
