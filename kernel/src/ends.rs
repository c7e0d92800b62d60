//! How a task ends: with its output, by a panic, or dropped; and the clean-up after it.

use std::any::Any;
use std::mem;

use traps::drop_locals;
use traps::protocol::{Left, TaskRef, Ticket};
use traps::threads::{drop_quietly, panic_message, quietly};

use crate::kernel::Kernel;
use crate::log::{announce, emit};
use crate::machine::Machine;
use crate::task::{End, NONE, State};
use crate::trace::{Event, Seq, Why};

impl<M: Machine> Kernel<M> {
    /// The task that was being polled has panicked.
    pub(crate) fn end_by_panic(&mut self, panic: Box<dyn Any + Send>) {
        let index = self.running.expect("a task was being polled");
        let message = panic_message(&*panic).to_owned();
        announce!(self, self.tasks.label(index), Event::Panic { text: message.as_str().into() });
        self.clear_away(index);
        self.tasks[index].rare().panic = Some(message);
        if self.tasks.is_main(index) {
            // The future of main belongs to the caller of `run`.
            self.main_panic = Some(panic);
        } else {
            drop_quietly(panic);
            // The future is dropped before its name is free: its requests are withdrawn, its scopes
            // closed.
            self.clear_body(index);
        }
        self.gate.end();
        // The requests of this poll are discarded.
        self.serve_posts();
        self.end_task(index, End::Panicked, self.run_line(index));
    }

    /// Drops a task's future or output, outside of any task. Its name stays.
    pub(crate) fn clear_body(&mut self, index: u32) {
        if let Some(body) = &mut self.tasks[index].body {
            self.gate.aside(|| quietly(|| body.as_mut().clear()));
        }
    }

    /// Ends a task: wakes its joiners, and removes everything else that belongs to it.
    pub(crate) fn end_task(&mut self, index: u32, end: End, cause: Seq) {
        let task = &self.tasks[index];
        if task.first.is_some() || task.newest_scope != NONE || task.rare.is_some() {
            self.release_all(index);
        }
        let how = self.tasks[index].exit(end);
        let ran = self.ran(index);
        let exit = emit!(self, index, Event::Exit { how, cause }, ran);
        let is_main = self.tasks.is_main(index);
        self.main_ended |= is_main;
        self.tasks.alive -= 1;
        let task = &mut self.tasks[index];
        task.detached |= is_main;
        let was = mem::replace(&mut task.state, State::Ended(end));
        if was == State::Ready {
            self.ready.remove(index);
        }
        if traps::any_locals() {
            let name = self.tasks.name_of(index);
            self.gate.aside(|| drop_locals(name));
        }
        if was == State::Running {
            if self.tasks[index].detached {
                // No task will take its output.
                self.clear_body(index);
                self.serve();
            }
            self.measure_run();
        }
        self.wake_joiners(index, exit);
        if self.tasks[index].detached {
            self.remove_task(index);
        }
    }

    /// Frees the place of a task that has ended and that no task can join any more.
    pub(crate) fn remove_task(&mut self, index: u32) {
        let task = self.tasks.remove(index);
        self.gate.free_task(index);
        drop_quietly(task);
    }

    /// Ends the waits and scopes that an ended task still has. Their futures are leaked, or belong
    /// to another task, or are inside main's future, which outlives the run.
    fn release_all(&mut self, index: u32) {
        let serials: Vec<_> = self.tasks[index].waits().map(|wait| wait.serial).collect();
        for serial in serials {
            self.withdraw(Ticket { task: index, serial }, self.run_line(index));
        }
        while self.tasks[index].newest_scope != NONE {
            let newest = self.tasks[index].newest_scope;
            let name = self.scopes.name_of(&self.tasks, index, newest);
            self.close_scope(name, Left::Other);
        }
        self.undefer(index, Why::Exit);
        let task = &mut self.tasks[index];
        task.sources = 0;
        if let Some(rare) = &mut task.rare {
            rare.deadlines.clear();
        }
    }

    /// Ends a task by dropping its future, in whatever state it is. A running task cannot be
    /// dropped, and stays.
    pub(crate) fn drop_task(&mut self, task: TaskRef, why: &'static str) {
        let Some(index) = self.tasks.find(task) else { return };
        if matches!(self.tasks[index].state, State::Ready | State::Parked) {
            let seq = emit!(self, index, Event::Drop { what: why.into() });
            self.clear_body(index);
            self.end_task(index, End::Dropped, seq);
        }
    }

    /// Drops the remaining tasks, newest first.
    pub(crate) fn drop_tasks(&mut self, why: &'static str) {
        for index in self.tasks.newest_first(0) {
            self.drop_task(self.tasks.name_of(index), why);
        }
    }
}
