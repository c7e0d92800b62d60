//! How a task ends: by its output, by a panic, or dropped; and what it leaves.

use std::mem;

use traps::protocol::Left;
use traps::threads::panic_message;

use crate::emit::{announce, drop_quietly, emit, quietly};
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::scope::Timing;
use crate::task::{End, NONE, State};
use crate::trace::{Event, Seq};

impl<M: Machine> Kernel<M> {
    pub(crate) fn end_by_panic(
        &mut self,
        index: u32,
        panic: Box<dyn std::any::Any + Send>,
        run: Seq,
    ) {
        let message = panic_message(&*panic).to_owned();
        let (id, name) = self.tasks.label(index);
        let name = name.to_owned();
        // What that poll armed is heeded after it.
        announce!(self, 0, id, &name, Event::Panic { text: message.as_str().into() });
        self.tasks.get_mut(index).rare().panic = message.into();
        if self.tasks.is_main(index) {
            self.main_panic = Some(panic);
            // The future stays with whoever runs the kernel.
        } else {
            drop_quietly(panic);
            // The future goes before its name: its requests are withdrawn, its scopes closed.
            self.drop_body(index);
        }
        // Of a future that lives on, too, nothing that this poll asked for is done.
        self.serve_posts();
        self.end_task(index, End::Panicked, run);
    }

    /// Drops a task's future, and heeds what its parts post.
    pub(crate) fn drop_future(&mut self, index: u32) {
        self.drop_body(index);
        self.serve();
    }

    /// Drops a task's future, in the name of no task.
    pub(crate) fn drop_body(&mut self, index: u32) {
        let task = self.tasks.get_mut(index);
        if let Some(body) = &mut task.body {
            let name = body.name().to_owned();
            let site = body.site();
            // A stand-in keeps the name for the lines to come.
            let stand_in = crate::task::stand_in(name, site);
            let body = mem::replace(body, stand_in);
            self.gate.aside(|| drop_quietly(body));
        }
    }

    /// The end of a task: its joiners hear of it, and nothing of it stays behind.
    pub(crate) fn end_task(&mut self, index: u32, end: End, cause: Seq) {
        let task = self.tasks.get(index);
        debug_assert!(!task.is_ended() && task.state != State::Gone, "a task ends once");
        if task.has_more() {
            self.cut_loose(index);
        }
        let exit = emit!(
            self,
            index,
            Event::Exit { how: self.tasks.get(index).exit(end), cause },
            self.ran(index)
        );
        let is_main = self.tasks.is_main(index);
        let task = self.tasks.get_mut(index);
        let state = task.state;
        task.end(end);
        task.detached |= is_main;
        let detached = task.detached;
        self.main_ended |= is_main;
        self.tasks.alive -= 1;
        if state == State::Ready {
            self.ready.remove(index);
        }
        if self.gate.has_locals() {
            self.drop_locals(index);
        }
        if state == State::Running {
            if detached {
                self.clear_output(index);
            }
            self.end_run(index);
        }
        // What was dropped may have given up a join, or the last handle.
        let task = self.tasks.get(index);
        let detached = task.detached;
        let is_taken = task.first_joiner != NONE && self.wake_joiners(index, exit);
        if detached || is_taken {
            self.remove_task(index);
        }
    }

    /// Frees the place of a task that has ended, and of which nobody will ask any more: its handle
    /// is gone, or has its output.
    #[inline(always)]
    pub(crate) fn remove_task(&mut self, index: u32) {
        let (body, rare) = self.tasks.remove(index);
        // Few tasks have it, and even to drop nothing is a call.
        if rare.is_some() {
            drop_quietly(rare);
        }
        if let Some(body) = body {
            quietly(|| body.retire());
        }
    }

    #[cold]
    fn drop_locals(&mut self, index: u32) {
        if let Some(locals) = self.gate.take_locals(self.tasks.name_of(index)) {
            self.gate.aside(|| locals.drop_each());
        }
    }

    /// What an ended task had open: its futures are gone, leaked, somebody else's, or main's, which
    /// outlives the run.
    #[cold]
    fn cut_loose(&mut self, index: u32) {
        let deferred = self.tasks.get(index).deferred().is_some();
        for ticket in self.waits.of(&self.tasks, index) {
            let number = self.waits.get(ticket).expect("a list holds parked tickets").number;
            emit!(self, index, Event::Withdraw { ticket: number });
            self.forget_wait(ticket);
        }
        for scope in self.scopes.of(&self.tasks, index) {
            match self.scopes.get(scope).timing {
                Timing::Bare => self.close_bare(scope),
                Timing::Own | Timing::Guard => self.close_scope(scope, Left::Other),
            }
        }
        if self.tasks.get(index).pending > 0 {
            self.scopes.drop_pending(&mut self.tasks, index, |_| true);
        }
        self.scopes.left.remove(&index);
        if deferred {
            self.undefer(index, crate::trace::Why::Exit);
        }
    }

    /// A run that ended its task is over when its output is gone too, if nobody will have it, and
    /// what that posted is heeded. A joiner takes it later, and the name with it.
    fn clear_output(&mut self, index: u32) {
        if let Some(body) = &mut self.tasks.get_mut(index).body {
            quietly(|| body.as_mut().clear());
        }
        self.serve();
    }
}
