//! How a task ends: with its output, by a panic, or dropped; and the clean-up after it.

use std::any::Any;
use std::cmp::Reverse;

use traps::core::names::{ScopeId, TaskRef};
use traps::core::protocol::{ClosedScope, End, Left};
use traps::core::records::Scope;
use traps::core::table::NONE;
use traps::drop_locals;
use traps::threads::{drop_quietly, panic_message, quietly};

use super::tasks::State;
use super::timers::Owner;
use super::wakers::SpareWaker;
use super::{Core, Services};
use crate::log::{announce, emit};
use crate::machine::Machine;
use crate::trace::{Event, Exit, Seq, Why};

impl<M: Machine> Core<M> {
    /// The task that was being polled has panicked.
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
        self.clear(index);
        // What the task has posted in the poll that panicked.
        self.serve_posts(services);
        self.end_task(index, End::Panicked(&message), self.run_line(index));
    }

    /// Ends a task: wakes those who wait for that, and removes everything that belongs to it.
    pub(crate) fn end_task(&mut self, index: u32, how: End<'_>, cause: Seq) {
        self.release_all(index);
        let body = self.tasks[index].body.as_mut();
        let queue = body.and_then(|body| body.as_mut().end(how));
        // An output that nobody will take: its drop is part of the run.
        self.clear(index);
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
        let exit = emit!(self, index, Event::Exit { how: shown, cause }, ran);
        self.main_ended |= self.tasks.is_main(index);
        if self.tasks[index].state == State::Ready {
            self.ready.remove(index);
        }
        if self.run.task == Some(index) {
            self.measure_run();
            self.run.task = None;
        }
        self.close_root(index);
        let task = self.tasks.remove(index);
        if traps::any_locals() {
            self.gate.aside(|| drop_locals(task.root));
        }
        if let Some(queue) = queue {
            self.wake(&queue, u64::MAX, exit);
        }
        self.gate.aside(|| drop_quietly(task));
    }

    /// Drops the future of a task, or its output.
    fn clear(&mut self, index: u32) {
        if let Some(body) = &mut self.tasks[index].body {
            self.gate.aside(|| quietly(|| body.as_mut().clear()));
        }
    }

    /// Ends the waits and scopes that an ended task still has. Their futures are about to be
    /// dropped, were leaked, or belong to another task.
    fn release_all(&mut self, index: u32) {
        let task = self.tasks[index].root;
        let records = self.gate.records();
        if !records.is_empty(task.index) {
            let waits = records.waits_inside(task.index);
            let mut scopes = records.scopes_inside(task.index);
            drop(records);
            for ticket in waits {
                self.withdraw(ticket, self.run_line(index));
            }
            scopes.sort_unstable_by_key(|(number, _)| Reverse(*number));
            for (number, scope) in scopes {
                self.close_left_scope(task, number, scope);
            }
        }
        self.undefer(index, Why::Exit);
    }

    /// Closes a scope that its future has left open.
    fn close_left_scope(&mut self, task: TaskRef, number: u64, scope: ScopeId) {
        let Some(closed) = self.gate.records().close(scope) else { return };
        if closed.timer != NONE {
            self.timers.cancel_of(closed.timer, Owner::Scope(scope));
        }
        let Scope { kind, deadline, .. } = closed;
        self.log_closed(&ClosedScope { task, number, kind, deadline, left: Left::Other });
    }

    /// Closes the scope around a task, and those around that.
    fn close_root(&mut self, index: u32) {
        let mut records = self.gate.records();
        let root = self.tasks[index].root;
        let mut at = records.scopes[root.index].parent;
        records.close(root);
        while at != NONE {
            let outer = records.scopes.key(at);
            at = records.scopes[at].parent;
            records.close(outer);
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
        if self.tasks[index].state != State::Running {
            let seq = emit!(self, index, Event::Drop { what: why.into() });
            self.clear(index);
            // What the drop has posted.
            self.serve_posts(services);
            self.end_task(index, End::Dropped, seq);
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
