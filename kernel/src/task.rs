//! The task table, and the record of a task: what the kernel stores about it.
//!
//! Polls nothing and wakes nothing. `waits.rs` has the waits of a record.

use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};
use std::pin::Pin;
use std::task::Waker;

use traps::protocol::{Body, Direction, NewTask, Owned, Site, TaskRef, Ticket};
use traps::{TaskId, Time};

use crate::interrupts::{Cancellation, FiredDeadline};
use crate::log::KERNEL;
use crate::trace::{Answered, Exit, Seq};
use crate::waits::Wait;

/// Not a place in a table: the end of a linked list inside one.
pub(crate) const NONE: u32 = u32::MAX;

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// In the ready queue.
    Ready,
    /// Being polled, or having its requests answered.
    Running,
    /// Waiting: for its waits, or for a waker alone.
    Parked,
    /// Ended.
    Ended(End),
    /// Its place in the table is free.
    Free,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Output,
    Panicked,
    Dropped,
}

/// A task. A sleeping task costs this much memory, so what few tasks need is in [`Rare`].
pub(crate) struct Task {
    pub(crate) generation: u32,
    pub(crate) state: State,
    /// It was answered while it ran: it is to be polled again.
    pub(crate) answered: bool,
    /// It has parked a wait in this run.
    pub(crate) parked_now: bool,
    /// It has a wait that completes when it leaves the CPU.
    pub(crate) gives_way: bool,
    /// Its waker was called while it ran, so it goes to the end of the ready queue.
    pub(crate) woken: bool,
    /// It is to be polled when the shutdown begins.
    pub(crate) watches_shutdown: bool,
    /// No task can join it.
    pub(crate) detached: bool,
    /// Its number, from 2; the kernel's own task is number 1.
    pub(crate) id: u64,
    /// Its future, then its output; `None` for main, and after the output was taken.
    pub(crate) body: Option<Pin<Box<dyn Body>>>,
    /// The number of the task that spawned it, 0 for none.
    pub(crate) parent: u64,
    /// The time since which it is ready or parked.
    pub(crate) since: Time,
    /// Its first wait, or the result of that; most tasks never have a second.
    pub(crate) first: Option<Wait>,
    /// How many times it had the CPU.
    pub(crate) runs: u32,
    /// Its newest scope, or [`NONE`].
    pub(crate) newest_scope: u32,
    /// How many interrupts may be pending in it: fired scopes and deadlines, and its cancellation.
    pub(crate) sources: u32,
    /// The first task that waits for its end; others are in [`Rare`].
    pub(crate) joiner: Option<Ticket>,
    pub(crate) rare: Option<Box<Rare>>,
}

/// Fields that few tasks ever need.
#[derive(Default)]
pub(crate) struct Rare {
    /// Parked waits besides the first, by serial number.
    pub(crate) more: Vec<Wait>,
    /// Their results that were not read yet.
    pub(crate) results: Vec<Wait>,
    /// The values that waits own, by serial number.
    pub(crate) owned: Vec<(NonZeroU32, Owned)>,
    /// Wakers of combinators, each to be called when that wait ends.
    pub(crate) wakers: Vec<(NonZeroU32, Waker)>,
    /// Its own waker, if a poll of it kept a clone of its waker.
    pub(crate) waker: Option<Waker>,
    pub(crate) joiners: Vec<Ticket>,
    pub(crate) cancel: Option<Cancellation>,
    /// Connection deadlines that fired without a guard.
    pub(crate) deadlines: Vec<FiredDeadline>,
    /// The message of the panic that ended it.
    pub(crate) panic: Option<String>,
    /// Policy NextSleep: the wait whose registration its last wake left in place.
    pub(crate) deferred: Option<(u32, Direction)>,
    /// What only the log needs.
    pub(crate) logged: Logged,
}

/// What the log remembers of a task while it is on.
#[derive(Default)]
pub(crate) struct Logged {
    /// The line that made it ready; while it runs, its `run` line.
    pub(crate) cause: Seq,
    /// The last time that it left the CPU, if it ever had it.
    pub(crate) left: Option<Time>,
    /// Its waits, from their `block` line to the `run` line with their result.
    pub(crate) waits: Vec<LoggedWait>,
    /// Waits that ended since it last ran, for its `run` line.
    pub(crate) answered: Vec<Answered<'static>>,
}

/// A wait as the log shows it.
pub(crate) struct LoggedWait {
    pub(crate) serial: NonZeroU32,
    /// Its number, as in `k=3`.
    pub(crate) number: u64,
    /// Its `block` line.
    pub(crate) line: Seq,
}

impl Task {
    fn new(
        generation: u32,
        id: TaskId,
        body: Option<Pin<Box<dyn Body>>>,
        parent: u64,
        detached: bool,
    ) -> Task {
        Task {
            generation,
            state: State::Parked,
            answered: false,
            parked_now: false,
            gives_way: false,
            woken: false,
            watches_shutdown: false,
            detached,
            id: id.0,
            body,
            parent,
            since: Time::ZERO,
            first: None,
            runs: 0,
            newest_scope: NONE,
            sources: 0,
            joiner: None,
            rare: None,
        }
    }

    /// A free place.
    fn free() -> Task {
        Task { state: State::Free, ..Task::new(0, TaskId(0), None, 0, true) }
    }

    #[inline]
    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    #[inline]
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }

    pub(crate) fn cancel(&self) -> Option<&Cancellation> {
        self.rare.as_ref()?.cancel.as_ref()
    }

    /// How it ended, for the log.
    pub(crate) fn exit(&self, end: End) -> Exit {
        match end {
            End::Panicked => Exit::Panic,
            End::Dropped => Exit::Dropped,
            End::Output if self.cancel().is_some_and(Cancellation::was_delivered) => {
                Exit::Cancelled
            }
            End::Output => Exit::Ok,
        }
    }
}

/// All tasks of a kernel. A free place has a record too.
pub(crate) struct Tasks {
    /// By the index that the gate chose.
    records: Vec<Task>,
    /// Which task is main, and the place where it was run.
    main: Option<(u32, Site)>,
    /// How many tasks have not ended.
    pub(crate) alive: usize,
}

impl Index<u32> for Tasks {
    type Output = Task;
    #[inline]
    fn index(&self, index: u32) -> &Task {
        &self.records[index as usize]
    }
}

impl IndexMut<u32> for Tasks {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Task {
        &mut self.records[index as usize]
    }
}

impl Tasks {
    pub(crate) fn new() -> Tasks {
        Tasks { records: Vec::new(), main: None, alive: 0 }
    }

    /// Adds a parked task.
    pub(crate) fn add(&mut self, new: NewTask, parent: u64) -> u32 {
        let NewTask { task: TaskRef { index, generation }, id, body, detached, .. } = new;
        self.put(index, Task::new(generation, id, Some(body), parent, detached))
    }

    /// Adds the main task. Its future is in the stack frame of `run`.
    pub(crate) fn add_main(&mut self, (name, id): (TaskRef, TaskId), site: Site) -> u32 {
        self.main = Some((name.index, site));
        self.put(name.index, Task::new(name.generation, id, None, 0, true))
    }

    fn put(&mut self, index: u32, task: Task) -> u32 {
        self.alive += 1;
        let place = index as usize;
        if place >= self.records.len() {
            self.records.resize_with(place + 1, Task::free);
        }
        self.records[place] = task;
        index
    }

    pub(crate) fn is_main(&self, index: u32) -> bool {
        self.main.is_some_and(|(main, _)| main == index)
    }

    /// Frees the place of a task that has ended; returns its record, to be dropped.
    pub(crate) fn remove(&mut self, index: u32) -> Task {
        if self.is_main(index) {
            self.main = None;
        }
        debug_assert!(self[index].is_ended(), "a task is removed once, when it has ended");
        std::mem::replace(&mut self[index], Task::free())
    }

    pub(crate) fn has(&self, ticket: Ticket) -> bool {
        let found = self.records.get(ticket.task as usize);
        found.is_some_and(|task| task.state != State::Free)
    }

    /// The task in that place, if there is one.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Task> {
        self.records.get_mut(index as usize).filter(|task| task.state != State::Free)
    }

    /// The place of a task, if it still exists.
    #[inline]
    pub(crate) fn find(&self, task: TaskRef) -> Option<u32> {
        let found = self.records.get(task.index as usize)?;
        let is_it = found.generation == task.generation && found.state != State::Free;
        is_it.then_some(task.index)
    }

    #[inline]
    pub(crate) fn name_of(&self, index: u32) -> TaskRef {
        TaskRef { index, generation: self[index].generation }
    }

    /// The number and the name of a task, or of the kernel, for the log.
    pub(crate) fn label_of(&self, index: Option<u32>) -> (u64, &str) {
        index.map_or(KERNEL, |index| self.label(index))
    }

    /// The number and the name, for the log.
    pub(crate) fn label(&self, index: u32) -> (u64, &str) {
        let task = &self[index];
        let name = match &task.body {
            Some(body) => body.name(),
            None if self.is_main(index) => "main",
            None => "-",
        };
        (task.id, name)
    }

    /// Where it was spawned; `None` if its output was taken.
    pub(crate) fn site(&self, index: u32) -> Option<Site> {
        match &self[index].body {
            Some(body) => Some(body.site()),
            None => self.main.filter(|(main, _)| *main == index).map(|(_, site)| site),
        }
    }

    /// All of them, ended ones too.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Task> {
        self.records.iter().filter(|task| task.state != State::Free)
    }

    /// The tasks with a number above `older` that have not ended, newest first.
    pub(crate) fn newest_first(&self, older: u64) -> Vec<u32> {
        let wanted = |task: &Task| !task.is_ended() && task.state != State::Free && task.id > older;
        let alive = (0..).zip(&self.records).filter(|(_, task)| wanted(task));
        let mut found: Vec<_> = alive.map(|(index, task)| (task.id, index)).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.into_iter().map(|(_, index)| index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_task_does_not_grow() {
        assert_eq!((size_of::<Option<Wait>>(), size_of::<Task>()), (40, 120));
    }
}
