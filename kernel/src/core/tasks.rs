//! The table of tasks, and the end of a task.
//!
//! A task is a small record: its root scope, its state, its number, its name, its future, and the
//! list of the waits for its end. Its waits and scopes are at the gate, and its output is in a cell
//! that its handle shares. So a task that has ended is gone from the table at once, even if its
//! handle is still there. A task is in one of three states:
//!
//! ```text
//!             make_ready                  run_task
//!   Parked ---------------->  Ready  ---------------->  Running
//!     ^                                                    |
//!     +----------------------- suspend --------------------+----> ended (end_task)
//! ```
//!
//! A task ends with its output, by a panic, or because it is dropped ([`End`]). In each case
//! `Core::end_task` takes the same steps in the same order: withdraw the remaining waits and
//! close the remaining scopes, hand the output to the cell, write the `exit` line, close the root
//! scope, remove the record, and wake the tasks that join it. User code (the drops of the future,
//! of the output and of the task's locals) runs outside of any borrow, and its panic does not stop
//! these steps.
//!
//! A sleeping task costs this record, so fields that few tasks need are in a box ([`Rare`]).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::{Index, IndexMut};
use std::pin::Pin;

use slab::Slab;
use traps::Time;
use traps::internal::protocol::Body;
use traps::internal::table::{Direction, HandleId, List, Site, TaskIndex, TaskRef};

use crate::log::KERNEL;
use crate::parts::wakers::SpareWaker;
use crate::trace::{Answered, Seq};

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The task is in the ready queue.
    Ready,
    /// The task is being polled, or its traps are being answered.
    Running,
    /// The task waits: for its waits, or for a waker alone.
    Parked,
}

/// A task that has not ended. A sleeping task costs this much memory, so fields that few tasks need
/// are in [`Rare`].
pub(crate) struct Task {
    /// The reference to the task: the scope around everything that the task does.
    pub(crate) root: TaskRef,
    pub(crate) state: State,
    /// The wait that the task last returned from, for `longrun` lines: the log's word and the call
    /// site.
    pub(crate) came: (&'static str, Option<Site>),
    /// The number of the task, from 2. The kernel's own task is number 1.
    pub(crate) id: u64,
    /// The name of the task.
    pub(crate) name: Cow<'static, str>,
    /// The task's future, until the task ends; `None` for main, whose future is in the stack frame
    /// of `run`.
    pub(crate) body: Option<Pin<Box<dyn Body>>>,
    /// The number of the task that spawned this task, or 0.
    pub(crate) parent: u64,
    /// The waits for the end of this task.
    pub(crate) joins: List,
    /// The time at which the task became ready or parked.
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
}

impl Task {
    /// Makes a parked task without a future.
    pub(crate) fn new(root: TaskRef, id: u64, name: Cow<'static, str>) -> Task {
        Task {
            root,
            state: State::Parked,
            came: ("", None),
            id,
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
#[derive(Default)]
pub(crate) struct Tasks {
    pub(super) rows: Slab<Task>,
    /// The index of main, until main has ended.
    pub(super) main: Option<TaskIndex>,
}

impl Index<TaskIndex> for Tasks {
    type Output = Task;
    #[inline]
    fn index(&self, index: TaskIndex) -> &Task {
        &self.rows[index.0 as usize]
    }
}

impl IndexMut<TaskIndex> for Tasks {
    #[inline]
    fn index_mut(&mut self, index: TaskIndex) -> &mut Task {
        &mut self.rows[index.0 as usize]
    }
}

impl Tasks {
    #[inline]
    pub(crate) fn is_main(&self, index: TaskIndex) -> bool {
        self.main == Some(index)
    }

    /// Removes a task that has ended. Returns its record, to be dropped.
    pub(crate) fn remove(&mut self, index: TaskIndex) -> Task {
        if self.is_main(index) {
            self.main = None;
        }
        self.rows.remove(index.0 as usize)
    }

    /// Returns whether the task `root` is at this index.
    #[inline]
    pub(crate) fn has(&self, index: TaskIndex, root: TaskRef) -> bool {
        self.rows.get(index.0 as usize).is_some_and(|task| task.root == root)
    }

    /// Returns the state of the task at this index, or `None` if there is no task.
    pub(crate) fn state(&self, index: TaskIndex) -> Option<State> {
        self.rows.get(index.0 as usize).map(|task| task.state)
    }

    /// Iterates over the tasks, with their indexes, in no meaningful order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TaskIndex, &Task)> {
        self.rows.iter().map(|(index, task)| (TaskIndex(index as u32), task))
    }

    /// Returns the number of tasks that have not ended.
    pub(crate) fn alive(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number and the name of a task, or of the kernel, for the log.
    pub(crate) fn label_of(&self, index: Option<TaskIndex>) -> (u64, &str) {
        index.map_or(KERNEL, |index| self.label(index))
    }

    /// Returns the number and the name of a task, for the log.
    pub(crate) fn label(&self, index: TaskIndex) -> (u64, &str) {
        let task = &self[index];
        (task.id, &task.name)
    }

    /// Returns the name of the task with this number, if the task has not ended. O(tasks).
    pub(crate) fn has_name(&self, id: u64) -> Option<&str> {
        let (index, _) = self.rows.iter().find(|(_, task)| task.id == id)?;
        Some(self.label(TaskIndex(index as u32)).1)
    }

    /// Iterates over the wakers that tasks have kept clones of.
    pub(crate) fn wakers(&self) -> impl Iterator<Item = &SpareWaker> {
        self.rows.iter().filter_map(|(_, task)| task.rare.as_ref()?.waker.as_ref())
    }

    /// Returns the indexes of the tasks with a number above `older`, newest first.
    pub(crate) fn newest_first(&self, older: u64) -> Vec<TaskIndex> {
        let wanted = self.rows.iter().filter(|(_, task)| task.id > older);
        let mut found: Vec<_> =
            wanted.map(|(index, task)| (task.id, TaskIndex(index as u32))).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.into_iter().map(|(_, index)| index).collect()
    }
}

#[cfg(test)]
mod tests {
    use traps::internal::scopes::{Scope, Wait};

    use super::*;

    #[test]
    fn what_is_kept_of_a_task_does_not_grow() {
        assert_eq!((size_of::<Task>(), size_of::<Scope>(), size_of::<Wait>()), (120, 104, 104));
    }
}
