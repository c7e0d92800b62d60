//! The tasks, and the queue of those that are ready.
//!
//! A task is one record in two halves, both at the same index. The half at the gate has what the
//! task's own polls need: its number, its waits and the scopes around it
//! ([`TaskRecord`](traps::internal::records::TaskRecord)). The half here has its state, its name,
//! its future, and the list of the waits for its end. The obvious way is one table for both. But a
//! future is user code, and its poll borrows the tables of the gate. So the kernel cannot poll it
//! in such a table: each poll would have to take it out and put it back. The output of a task is in
//! a cell that its handle shares. So a task that has ended is gone at once, even if its handle is
//! still there. A task is in one of three states:
//!
//! ```text
//!             make_ready                  run_task
//!   Parked ---------------->  Ready  ---------------->  Running
//!     ^                                                    |
//!     +----------------------- suspend --------------------+----> ended (end_task)
//! ```
//!
//! A task ends with its output, by a panic, or because it is dropped ([`End`]). A drop ends it in
//! any state but `Running`. If it panics or is dropped, its future goes first. Then
//! `Core::end_task` takes the same steps in the same order: withdraw the remaining waits and close
//! the remaining scopes, hand the output to the cell, remove the record with the scopes around the
//! task, write the `exit` line, and wake the tasks that join it. User code (the drops of
//! the future, of the output and of the task's locals) runs outside of any borrow, and its panic
//! does not stop these steps.
//!
//! A sleeping task costs this record, so fields that few tasks need are in a box ([`Rare`]).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::mem;
use std::ops::{Index, IndexMut};
use std::pin::Pin;

use traps::Time;
use traps::internal::gate::Gate;
use traps::internal::protocol::Body;
use traps::internal::table::{Direction, HandleId, List, Queue, Site, TaskIndex, TaskRef};

use crate::log::KERNEL;
use crate::parts::wakers::SpareWaker;
use crate::trace::{Answered, Seq};

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// The task is in the ready queue.
    Ready,
    /// The task is being polled, or its traps are being answered.
    Running,
    /// The task waits: for its waits, or for a waker alone.
    Parked,
}

/// A task that has not ended. A sleeping task costs this much memory, so fields that few tasks need
/// are in [`Rare`].
pub(crate) struct KernelTask {
    pub(crate) state: TaskState,
    /// The serial number of the task's key. The table of the gate has it too, but a wake compares
    /// it without a borrow of that.
    pub(crate) serial: u32,
    /// The name of the task.
    pub(crate) name: Cow<'static, str>,
    /// The task's future, until the task ends; `None` for main, whose future is in the stack frame
    /// of `run`.
    pub(crate) body: Option<Pin<Box<dyn Body>>>,
    /// The number of the task that spawned this task, or 0.
    pub(crate) parent: u64,
    /// The waits for the end of this task.
    pub(crate) joins: List,
    /// The time at which the task became ready or parked, whichever was last.
    pub(crate) since: Time,
    /// The number of times that the task has had the CPU.
    pub(crate) runs: u32,
    pub(crate) rare: Option<Box<Rare>>,
}

/// The fields of a task that few tasks ever need.
#[derive(Default)]
pub(crate) struct Rare {
    /// The task's own waker, if a poll kept a clone of it.
    pub(crate) waker: Option<SpareWaker>,
    /// The wait whose registration the last wake left in place, under policy NextSleep.
    pub(crate) deferred: Option<(HandleId, Direction)>,
    // The fields for the log, used while it is on:
    /// The log line of the event that made the task ready.
    pub(crate) cause: Seq,
    /// The time at which the task last left the CPU. `None` before its first run.
    pub(crate) left: Option<Time>,
    /// The waits that have ended since the task's last run, for its next `run` line.
    pub(crate) answered: Vec<Answered<'static>>,
    /// The numbers of the task's open scopes. The last is the newest.
    pub(crate) scopes: BTreeSet<u64>,
    /// The lines of the task's spawn and of its last `block`, and those that have ended the waits
    /// in `answered`.
    pub(crate) lines: [Seq; 2],
    pub(crate) answers: Vec<Seq>,
    /// The queues of the permits that the task holds, with the lines that say so.
    pub(crate) held: Vec<(*const Queue, Seq)>,
}

impl KernelTask {
    /// Makes a parked task without a future.
    pub(crate) fn new(task: TaskRef, name: Cow<'static, str>) -> KernelTask {
        KernelTask {
            state: TaskState::Parked,
            serial: task.serial(),
            name,
            body: None,
            parent: 0,
            joins: List::default(),
            since: Time::ZERO,
            runs: 0,
            rare: None,
        }
    }

    #[cold]
    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

/// The tasks of a kernel that have not ended.
pub(crate) struct Tasks {
    /// The gate, which has the other half of each task.
    gate: &'static Gate,
    /// The tasks by index. `None` for a task that has ended, or whose spawn is not handled yet.
    rows: Vec<Option<KernelTask>>,
    alive: usize,
    /// The index of main, until main has ended.
    pub(crate) main: Option<TaskIndex>,
}

impl Index<TaskIndex> for Tasks {
    type Output = KernelTask;
    #[inline]
    fn index(&self, index: TaskIndex) -> &KernelTask {
        self.rows[index.0 as usize].as_ref().expect("the task has not ended")
    }
}

impl IndexMut<TaskIndex> for Tasks {
    #[inline]
    fn index_mut(&mut self, index: TaskIndex) -> &mut KernelTask {
        self.rows[index.0 as usize].as_mut().expect("the task has not ended")
    }
}

impl Tasks {
    pub(crate) fn new(gate: &'static Gate) -> Tasks {
        Tasks { gate, rows: Vec::new(), alive: 0, main: None }
    }

    /// Adds the kernel's half of a task. Returns the index.
    #[inline]
    pub(crate) fn add(&mut self, key: TaskRef, task: KernelTask) -> TaskIndex {
        let index = TaskIndex::of(key);
        let row = index.0 as usize;
        if row >= self.rows.len() {
            self.rows.resize_with(row + 1, || None);
        }
        debug_assert!(self.rows[row].is_none(), "a row has one task");
        self.rows[row] = Some(task);
        self.alive += 1;
        index
    }

    #[inline]
    pub(crate) fn is_main(&self, index: TaskIndex) -> bool {
        self.main == Some(index)
    }

    /// Removes a task that has ended, and the scopes around it. Returns the kernel's half of it,
    /// to be dropped.
    pub(crate) fn remove(&mut self, index: TaskIndex) -> KernelTask {
        if self.is_main(index) {
            self.main = None;
        }
        let (key, mut records) = (self.key(index), self.gate.records());
        records.close_around_task(key);
        records.remove_task(key);
        drop(records);
        self.alive -= 1;
        self.rows[index.0 as usize].take().expect("a task ends once")
    }

    /// Returns the index of a task, or `None` if it has ended or its spawn is not handled yet.
    #[inline]
    pub(crate) fn find(&self, task: TaskRef) -> Option<TaskIndex> {
        let found = self.rows.get(task.index as usize)?.as_ref()?;
        (found.serial == task.serial()).then_some(TaskIndex::of(task))
    }

    /// Returns the key of a task.
    #[inline]
    pub(crate) fn key(&self, index: TaskIndex) -> TaskRef {
        TaskRef::new(index.0, self[index].serial)
    }

    /// Returns the number of a task, from 2. The kernel's own task is number 1.
    pub(crate) fn id(&self, index: TaskIndex) -> u64 {
        self.gate.records().tasks[index.0].number
    }

    /// Returns the location at which a task was spawned.
    pub(crate) fn site(&self, index: TaskIndex) -> Site {
        self.gate.records().tasks[index.0].site
    }

    /// Returns the state of the task at this index, or `None` if there is no task.
    pub(crate) fn state(&self, index: TaskIndex) -> Option<TaskState> {
        Some(self.rows.get(index.0 as usize)?.as_ref()?.state)
    }

    /// Iterates over the tasks, with their indexes, in no meaningful order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TaskIndex, &KernelTask)> {
        (0..)
            .map(TaskIndex)
            .zip(&self.rows)
            .filter_map(|(index, task)| Some((index, task.as_ref()?)))
    }

    /// Returns the number of tasks that have not ended.
    pub(crate) fn alive(&self) -> usize {
        self.alive
    }

    /// Returns the number and the name of a task, or of the kernel, for the log.
    pub(crate) fn label_of(&self, index: Option<TaskIndex>) -> (u64, &str) {
        index.map_or(KERNEL, |index| self.label(index))
    }

    /// Returns the number and the name of a task, for the log.
    pub(crate) fn label(&self, index: TaskIndex) -> (u64, &str) {
        (self.id(index), &self[index].name)
    }

    /// Returns the name of the task with this number, if the task has not ended. O(tasks).
    pub(crate) fn name_of(&self, id: u64) -> Option<&str> {
        let (_, task) = self.iter().find(|(index, _)| self.id(*index) == id)?;
        Some(&task.name)
    }

    /// Iterates over the wakers that tasks have kept clones of.
    pub(crate) fn wakers(&self) -> impl Iterator<Item = &SpareWaker> {
        self.iter().filter_map(|(_, task)| task.rare.as_ref()?.waker.as_ref())
    }

    /// Returns the indexes of the tasks with a number above `older`, newest first.
    pub(crate) fn newest_first(&self, older: u64) -> Vec<TaskIndex> {
        let numbered = self.iter().map(|(index, _)| (self.id(index), index));
        let mut found: Vec<_> = numbered.filter(|(id, _)| *id > older).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.into_iter().map(|(_, index)| index).collect()
    }
}

/// The queue of ready tasks, in the order in which they became ready.
#[derive(Default)]
pub(crate) struct ReadyQueue {
    /// The tasks of this turn. The first `taken` of them have run.
    pub(super) this_turn: Vec<TaskIndex>,
    taken: usize,
    /// The tasks of the next turn.
    next_turn: Vec<TaskIndex>,
    /// The turn of the last run, for the view of the state.
    pub(crate) ran_in: Option<u64>,
}

impl ReadyQueue {
    #[inline]
    pub(crate) fn push(&mut self, task: TaskIndex) {
        debug_assert!(self.next_turn.last() != Some(&task), "a task is in the queue once");
        self.next_turn.push(task);
    }

    /// Starts a turn, in which all tasks that are ready now will run.
    #[inline]
    pub(super) fn begin_turn(&mut self) {
        debug_assert!(self.taken <= self.this_turn.len(), "no more have run than were ready");
        // If main ended during the last turn, tasks of that turn are left. They run before those of
        // the next.
        let taken = mem::take(&mut self.taken);
        // The usual case swaps two buffers, so no turn allocates.
        if taken == self.this_turn.len() {
            self.this_turn.clear();
            mem::swap(&mut self.this_turn, &mut self.next_turn);
        } else {
            // Main ended during the last turn.
            self.this_turn.drain(..taken);
            self.this_turn.append(&mut self.next_turn);
        }
    }

    /// Takes the next task of this turn.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<TaskIndex> {
        let task = *self.this_turn.get(self.taken)?;
        self.taken += 1;
        Some(task)
    }

    /// Returns the tasks of this turn that have not run, and the tasks of the next turn.
    pub(crate) fn parts(&self) -> (&[TaskIndex], &[TaskIndex]) {
        (&self.this_turn[self.taken..], &self.next_turn)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.this_turn.len() && self.next_turn.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskIndex> {
        self.this_turn[self.taken..].iter().chain(&self.next_turn).copied()
    }

    /// Removes a task that ends while it is ready. Searches from the end, because tasks are dropped
    /// newest first.
    pub(crate) fn remove(&mut self, task: TaskIndex) {
        let is_it = |ready: &TaskIndex| *ready == task;
        if let Some(place) = self.next_turn.iter().rposition(is_it) {
            self.next_turn.remove(place);
        } else if let Some(place) = self.this_turn[self.taken..].iter().rposition(is_it) {
            self.this_turn.remove(self.taken + place);
        }
    }
}

#[cfg(test)]
mod tests {
    use traps::internal::records::{TaskRecord, Wait};
    use traps::internal::source::Scope;

    use super::*;

    #[test]
    fn what_is_kept_of_a_task_does_not_grow() {
        // The serial number of a row's key makes a row at the gate 8 bytes larger.
        assert_eq!((size_of::<Option<KernelTask>>(), size_of::<TaskRecord>()), (80, 32));
        assert_eq!((size_of::<Scope>(), size_of::<Wait>()), (88, 104));
    }
}
