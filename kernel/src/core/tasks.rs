//! The table of tasks, and the record of a task: what the kernel stores about it. A task that has
//! ended is gone from the table.
//!
//! Polls nothing and wakes nothing. The waits and the scopes of a task lie at the gate.

use std::ops::{Index, IndexMut};
use std::pin::Pin;

use slab::Slab;
use traps::Time;
use traps::core::names::{Direction, HandleId, Site, TaskRef};
use traps::core::protocol::Body;

use super::wakers::SpareWaker;
use crate::log::KERNEL;
use crate::trace::{Answered, Seq};

/// The future of a task.
type Boxed = Pin<Box<dyn Body>>;

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// In the ready queue.
    Ready,
    /// Being polled, or having its traps answered.
    Running,
    /// Waiting: for its waits, or for a waker alone.
    Parked,
}

/// A task. A sleeping task costs this much memory, so what few tasks need is in [`Rare`].
pub(crate) struct Task {
    /// Its name: the scope around all that it does.
    pub(crate) root: TaskRef,
    pub(crate) state: State,
    /// The word of the wait that it came back from, and where that was made; for long runs.
    pub(crate) came: (&'static str, Option<Site>),
    /// Its number, from 2; the kernel's own task is number 1.
    pub(crate) id: u64,
    /// Its future; `None` for main.
    pub(crate) body: Option<Boxed>,
    /// The number of the task that spawned it, 0 for none.
    pub(crate) parent: u64,
    /// The time since which it is ready or parked.
    pub(crate) since: Time,
    /// How many times it had the CPU.
    pub(crate) runs: u32,
    pub(crate) rare: Option<Box<Rare>>,
}

/// Fields that few tasks ever need.
#[derive(Default)]
pub(crate) struct Rare {
    /// Its own waker, if a poll of it kept a clone of its waker.
    pub(crate) waker: Option<SpareWaker>,
    /// Policy NextSleep: the wait whose registration its last wake left in place.
    pub(crate) deferred: Option<(HandleId, Direction)>,
    // What the log remembers of it while it is on:
    /// The line that made it ready; while it runs, its `run` line.
    pub(crate) cause: Seq,
    /// The last time that it left the CPU, if it ever had it.
    pub(crate) left: Option<Time>,
    /// Waits that ended since it last ran, for its `run` line.
    pub(crate) answered: Vec<Answered<'static>>,
}

impl Task {
    #[inline]
    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

/// The tasks of a kernel that have not ended.
#[derive(Default)]
pub(crate) struct Tasks {
    rows: Slab<Task>,
    /// Which task is main, and the place where it was run.
    pub(super) main: Option<(u32, Site)>,
}

impl Index<u32> for Tasks {
    type Output = Task;
    #[inline]
    fn index(&self, index: u32) -> &Task {
        &self.rows[index as usize]
    }
}

impl IndexMut<u32> for Tasks {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Task {
        &mut self.rows[index as usize]
    }
}

impl Tasks {
    /// Adds a parked task. Main has no body: its future is in the stack frame of `run`.
    pub(crate) fn add(&mut self, root: TaskRef, id: u64, parent: u64, body: Option<Boxed>) -> u32 {
        let index = self.rows.insert(Task {
            root,
            state: State::Parked,
            came: ("", None),
            id,
            body,
            parent,
            since: Time::ZERO,
            runs: 0,
            rare: None,
        });
        u32::try_from(index).expect("fewer than 2^32 tasks")
    }

    /// The task of main, if it has not ended.
    pub(crate) fn main(&self) -> Option<u32> {
        self.main.map(|(main, _)| main)
    }

    #[inline]
    pub(crate) fn is_main(&self, index: u32) -> bool {
        self.main.is_some_and(|(main, _)| main == index)
    }

    /// Removes a task that has ended; returns its record, to be dropped.
    pub(crate) fn remove(&mut self, index: u32) -> Task {
        if self.is_main(index) {
            self.main = None;
        }
        self.rows.remove(index as usize)
    }

    /// Whether the task in that place is that one.
    #[inline]
    pub(crate) fn has(&self, index: u32, root: TaskRef) -> bool {
        self.rows.get(index as usize).is_some_and(|task| task.root == root)
    }

    /// What the task in that place is doing; `None` if there is none.
    pub(crate) fn state(&self, index: u32) -> Option<State> {
        self.rows.get(index as usize).map(|task| task.state)
    }

    /// How many have not ended.
    pub(crate) fn alive(&self) -> usize {
        self.rows.len()
    }

    /// The number and the name of a task, or of the kernel, for the log.
    pub(crate) fn label_of(&self, index: Option<u32>) -> (u64, &str) {
        index.map_or(KERNEL, |index| self.label(index))
    }

    /// The number and the name, for the log.
    pub(crate) fn label(&self, index: u32) -> (u64, &str) {
        let task = &self[index];
        (task.id, task.body.as_ref().map_or("main", |body| body.name()))
    }

    /// The name of the task of that number, if it lives. O(tasks).
    pub(crate) fn has_name(&self, id: u64) -> Option<&str> {
        let (index, _) = self.rows.iter().find(|(_, task)| task.id == id)?;
        Some(self.label(index as u32).1)
    }

    /// Where it was spawned.
    pub(crate) fn site(&self, index: u32) -> Option<Site> {
        match &self[index].body {
            Some(body) => Some(body.site()),
            None => self.main.filter(|(main, _)| *main == index).map(|(_, site)| site),
        }
    }

    /// The wakers of tasks whose polls kept a clone of theirs.
    pub(crate) fn wakers(&self) -> impl Iterator<Item = &SpareWaker> {
        self.rows.iter().filter_map(|(_, task)| task.rare.as_ref()?.waker.as_ref())
    }

    /// The tasks with a number above `older`, newest first.
    pub(crate) fn newest_first(&self, older: u64) -> Vec<u32> {
        let wanted = self.rows.iter().filter(|(_, task)| task.id > older);
        let mut found: Vec<_> = wanted.map(|(index, task)| (task.id, index as u32)).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.into_iter().map(|(_, index)| index).collect()
    }
}

#[cfg(test)]
mod tests {
    use traps::core::records::{Scope, Wait};

    use super::*;

    #[test]
    fn what_is_kept_of_a_task_does_not_grow() {
        assert_eq!((size_of::<Task>(), size_of::<Scope>(), size_of::<Wait>()), (88, 96, 88));
    }
}
