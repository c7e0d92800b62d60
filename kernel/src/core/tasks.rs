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
//! [`Core::end_task`] takes the same steps in the same order: withdraw the remaining waits and
//! close the remaining scopes, hand the output to the cell, write the `exit` line, close the root
//! scope, remove the record, and wake the tasks that join it. User code (the drops of the future,
//! of the output and of the task's locals) runs outside of any borrow, and its panic does not stop
//! these steps.
//!
//! A sleeping task costs this record, so fields that few tasks need are in a box ([`Rare`]).

use std::any::Any;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::{Index, IndexMut};
use std::pin::Pin;

use slab::Slab;
use traps::internal::protocol::{Body, End, Left, Reply, ScopeEvent, ScopeKind, ScopePost};
use traps::internal::scopes::Scope;
use traps::internal::table::{Direction, HandleId, List, ScopeId, Site, TaskId, TaskRef};
use traps::threads::{drop_of_task, drop_quietly, panic_message};
use traps::{Time, drop_locals};

use super::{Core, Services};
use crate::log::{KERNEL, announce, emit, emit_for};
use crate::machine::Machine;
use crate::parts::wakes::SpareWaker;
use crate::trace::{Answered, Event, Exit, Seq, Why};

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
    /// The log's word and the call site of the wait of this task that ended last. For long runs.
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
    rows: Slab<Task>,
    /// The index of main, until main has ended.
    pub(super) main: Option<u32>,
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
    #[inline]
    pub(crate) fn is_main(&self, index: u32) -> bool {
        self.main == Some(index)
    }

    /// Removes a task that has ended. Returns its record, to be dropped.
    pub(crate) fn remove(&mut self, index: u32) -> Task {
        if self.is_main(index) {
            self.main = None;
        }
        self.rows.remove(index as usize)
    }

    /// Returns whether the task `root` is at this index.
    #[inline]
    pub(crate) fn has(&self, index: u32, root: TaskRef) -> bool {
        self.rows.get(index as usize).is_some_and(|task| task.root == root)
    }

    /// Returns the state of the task at this index, or `None` if there is no task.
    pub(crate) fn state(&self, index: u32) -> Option<State> {
        self.rows.get(index as usize).map(|task| task.state)
    }

    /// Returns the number of tasks that have not ended.
    pub(crate) fn alive(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number and the name of a task, or of the kernel, for the log.
    pub(crate) fn label_of(&self, index: Option<u32>) -> (u64, &str) {
        index.map_or(KERNEL, |index| self.label(index))
    }

    /// Returns the number and the name of a task, for the log.
    pub(crate) fn label(&self, index: u32) -> (u64, &str) {
        let task = &self[index];
        (task.id, &task.name)
    }

    /// Returns the name of the task with this number, if the task has not ended. O(tasks).
    pub(crate) fn has_name(&self, id: u64) -> Option<&str> {
        let (index, _) = self.rows.iter().find(|(_, task)| task.id == id)?;
        Some(self.label(index as u32).1)
    }

    /// Iterates over the wakers that tasks have kept clones of.
    pub(crate) fn wakers(&self) -> impl Iterator<Item = &SpareWaker> {
        self.rows.iter().filter_map(|(_, task)| task.rare.as_ref()?.waker.as_ref())
    }

    /// Returns the indexes of the tasks with a number above `older`, newest first.
    pub(crate) fn newest_first(&self, older: u64) -> Vec<u32> {
        let wanted = self.rows.iter().filter(|(_, task)| task.id > older);
        let mut found: Vec<_> = wanted.map(|(index, task)| (task.id, index as u32)).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.into_iter().map(|(_, index)| index).collect()
    }
}

impl<M: Machine> Core<M> {
    /// Adds a task to the tasks of the kernel. Returns its index.
    pub(crate) fn add_task(&mut self, task: Task) -> u32 {
        let root = task.root.index;
        let index = self.tasks.rows.insert(task);
        let index = u32::try_from(index).expect("fewer than 2^32 tasks");
        self.gate.records().scopes[root].task = index;
        index
    }

    /// Returns the location at which a task was spawned.
    pub(crate) fn site_of(&self, index: u32) -> Site {
        self.gate.records().scopes[self.tasks[index].root.index].site
    }

    /// Ends the task whose poll has panicked.
    pub(super) fn end_by_panic(
        &mut self,
        services: &mut impl Services<M>,
        panic: Box<dyn Any + Send>,
    ) {
        let index = self.run.task.expect("a task was being polled");
        if self.spare.was_kept() {
            self.spare = SpareWaker::new(&self.inbox);
        }
        let message = panic_message(&*panic).to_owned();
        announce!(self, self.tasks.label(index), Event::Panic { text: message.as_str().into() });
        if self.tasks.is_main(index) {
            // The future of main belongs to the caller of `run`.
            self.main_panic = Some(panic);
        } else {
            drop_quietly(panic);
        }
        self.gate.end();
        self.drop_body(index, End::Panicked(&message), "future");
        // Serve the posts of the poll that panicked.
        self.serve_posts(services);
        self.end_task(index, End::Panicked(&message));
    }

    /// Ends a task: wakes the tasks that join it, and removes everything that belongs to it.
    pub(crate) fn end_task(&mut self, index: u32, how: End<'_>) {
        self.release_all(index);
        // The drop of an output that no handle takes is part of the run.
        self.drop_body(index, how, "output");
        let root = self.tasks[index].root;
        let shown = match how {
            End::Panicked(_) => Exit::Panic,
            End::Dropped => Exit::Dropped,
            End::Output if self.gate.records().scopes[root.index].was_taken(root) => {
                Exit::Cancelled
            }
            End::Output => Exit::Ok,
        };
        let ran = self.ran(index);
        self.main_ended |= self.tasks.is_main(index);
        if self.tasks[index].state == State::Ready {
            self.ready.remove(index);
        }
        if self.run.task == Some(index) {
            self.measure_run();
            self.run.task = None;
        }
        self.close_root(index);
        let Task { id, name, joins, .. } = self.tasks.remove(index);
        let cause = self.log.cause;
        emit_for!(self, (id, &*name), Event::Exit { how: shown, cause }, ran);
        if traps::any_locals() {
            for text in self.gate.aside(|| drop_locals(root, TaskId(id))) {
                announce!(self, KERNEL, Event::Warn { text: text.into() });
            }
        }
        self.end_joins(joins);
    }

    /// Ends the waits for the end of a task, in the order in which they were filed.
    fn end_joins(&mut self, mut joins: List) {
        while let Some(first) = joins.first() {
            let mut records = self.gate.records();
            joins.remove(&mut records.waits, first, |wait| &mut wait.in_queue);
            let ticket = records.waits.key(first);
            drop(records);
            self.complete(ticket, Reply::Done);
        }
    }

    /// Stores the result of a task for its handle, and drops the body of the task. A panic in the
    /// drop is a `warn` line.
    fn drop_body(&mut self, index: u32, how: End<'_>, what: &str) {
        let task = &mut self.tasks[index];
        let Some(mut body) = task.body.take() else { return };
        body.as_mut().end(how);
        let clear = || drop_of_task(TaskId(task.id), what, || drop(body));
        if let Some(text) = self.gate.aside(clear) {
            announce!(self, self.tasks.label(index), Event::Warn { text: text.into() });
        }
    }

    /// Ends the waits and scopes that an ended task still has. Their futures were leaked, or have
    /// moved to another task.
    fn release_all(&mut self, index: u32) {
        let task = self.tasks[index].root;
        let has_waits = self.gate.records().waits_of(task.index).next().is_some();
        if has_waits {
            self.withdraw_all(task);
        }
        let records = self.gate.records();
        let mut scopes = Vec::new();
        if records.scopes[task.index].open > 0 {
            let left = records.scopes.iter().filter(|(_, scope)| scope.root == task);
            let left = left.filter(|(_, it)| it.is_inner && it.kind != ScopeKind::Closed);
            scopes.extend(left.map(|(id, it)| (Reverse(it.number), id)));
        }
        drop(records);
        scopes.sort_unstable();
        for (Reverse(number), scope) in scopes {
            self.close_left_scope(task, number, scope);
        }
        self.undefer(index, Why::Exit);
    }

    /// Closes a scope that its future has left open.
    fn close_left_scope(&mut self, task: TaskRef, number: u64, scope: ScopeId) {
        let Some(closed) = self.gate.records().close(scope) else { return };
        let Scope { kind, deadline, .. } = closed;
        let event = ScopeEvent::Closed(Left::Other);
        self.log_scope(&ScopePost { task, number, kind, deadline, event });
    }

    /// Closes the root scope of a task, and the scopes around the root.
    fn close_root(&mut self, index: u32) {
        let mut records = self.gate.records();
        let mut at = self.tasks[index].root;
        while let Some(closed) = records.close(at) {
            at = closed.parent;
        }
    }

    /// Ends a task by dropping its future, in whatever state it is. A running task cannot be
    /// dropped, and stays.
    pub(crate) fn drop_task(
        &mut self,
        services: &mut impl Services<M>,
        task: TaskRef,
        why: &'static str,
    ) {
        let Some(index) = self.find(task) else { return };
        if self.run.task != Some(index) {
            let line = emit!(self, index, Event::Drop { why: why.into() });
            self.drop_body(index, End::Dropped, "future");
            // Serve the posts of the drop.
            self.serve_posts(services);
            self.log.cause = line;
            self.end_task(index, End::Dropped);
        }
    }

    /// Drops the remaining tasks, newest first.
    pub(crate) fn drop_tasks(&mut self, services: &mut impl Services<M>, why: &'static str) {
        let tasks = self.tasks.newest_first(0).into_iter();
        let tasks: Vec<TaskRef> = tasks.map(|index| self.tasks[index].root).collect();
        for task in tasks {
            self.drop_task(services, task, why);
        }
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
