//! What ends because its future is gone: a wait, and a task with all that it has left.

use traps::internal::protocol::{End, Reply, ServicePost, Trap};
use traps::internal::records::{Wait, WaitState};
use traps::internal::table::{TaskId, TaskIndex, Ticket};
use traps::internal::{drop_locals, drop_of_task, drop_quietly};

use super::Core;
use super::tasks::{KernelTask, TaskState};
use super::waits::call_waker;
use crate::log::KERNEL;
use crate::log::lines::{announce, emit, emit_for};
use crate::machine::Machine;
use crate::trace::{Event, Exit, Why};

impl<M: Machine> Core<M> {
    /// Withdraws a wait: undoes it if it is parked, and takes back its reply if it was not read. A
    /// trap that is dropped before its dispatch is withdrawn at the gate.
    pub(crate) fn withdraw(&mut self, ticket: Ticket) {
        let records = self.sched.gate.records();
        let Some(wait) = records.waits.get(ticket) else { return };
        let (task, is_parked) = (wait.task, wait.is_parked());
        let interrupt = wait.interrupt().cloned();
        drop(records);
        if is_parked {
            let (number, _) = self.sched.log.number_of(ticket);
            emit!(self.sched, task, Event::Withdraw { ticket: number });
            let (trap, _) = self.sched.trap_of(ticket);
            self.sched.undo_park(ticket, &trap);
            if let Trap::Io { handle, direction } = trap {
                self.handles.stop_waiting(&mut self.sched, handle, direction);
            }
        }
        // Repend first, because it walks outwards from the scope of this wait. A scope that has
        // closed is there only as long as this record is in it.
        if let Some(interrupt) = interrupt {
            self.repend(&interrupt);
        }
        let Some(gone) = self.sched.gate.records().remove_wait(ticket) else { return };
        let Wait { trap, state, waker, .. } = gone;
        drop_quietly(waker);
        if let WaitState::Done(reply) = state {
            self.return_reply(&trap, reply);
        }
    }

    /// Withdraws the waits that an ended task still has.
    #[cold]
    fn withdraw_all(&mut self, task: TaskIndex) {
        let records = self.sched.gate.records();
        let waits = records.waits_of(task);
        let mut left: Vec<_> = waits.map(|(ticket, wait)| (wait.is_parked(), ticket)).collect();
        drop(records);
        // Parked waits first. Otherwise an interrupt that goes back would end one of them for
        // nothing.
        left.sort_by_key(|(is_parked, _)| !is_parked);
        for (_, ticket) in left {
            let mut records = self.sched.gate.records();
            let waker = records.waits.get_mut(ticket).and_then(|wait| wait.waker.take());
            drop(records);
            self.withdraw(ticket);
            // A combinator in another task has the future now, and polls it again only if it is
            // woken.
            call_waker(waker);
        }
    }

    /// Ends a task: removes everything that belongs to it, and then wakes the tasks that join it.
    pub(crate) fn end_task(&mut self, index: TaskIndex, how: End<'_>) {
        // The waits first: each may give back a permit or an interrupt, whose lines come before the
        // end of the task.
        self.release_all(index);
        // Before the run is measured: the drop of an output that no handle takes counts as run
        // time.
        self.drop_body(index, how, "output");
        debug_assert!(
            self.sched.gate.records().waits_of(index).next().is_none(),
            "a task that ends has no waits left"
        );
        let key = self.sched.tasks.key(index);
        let shown = match how {
            End::Panicked(_) => Exit::Panic,
            End::Dropped => Exit::Dropped,
            // A task that was asked to end but came to its own end first was not cancelled.
            End::Output if self.sched.gate.records().was_cancellation_taken(key) => Exit::Cancelled,
            End::Output => Exit::Ok,
        };
        let ran = self.sched.ran(index);
        // This ends the runs of the turn: `run` returns the output of main at once.
        if self.sched.tasks.is_main(index) {
            self.main_ended = true;
            self.main_was_cut = matches!(shown, Exit::Cancelled | Exit::Dropped);
        }
        // A dropped task may be in the ready queue, and its index is soon that of another task.
        if self.sched.tasks[index].state == TaskState::Ready {
            self.sched.ready.remove(index);
        }
        if self.sched.run.task == Some(index) {
            self.longrun.measure(&mut self.sched);
            self.sched.run.task = None;
        }
        let id = self.sched.tasks.id(index);
        // From here the key of the task names nothing, so a waker or a `cancel` that still has it
        // does nothing.
        let KernelTask { name, joins, .. } = self.sched.tasks.remove(index);
        let cause = self.sched.log.cause;
        emit_for!(self.sched, (id, &*name), Event::Exit { how: shown, cause }, ran);
        // The task is gone from the table by now, so a destructor of a local finds no current task.
        if traps::internal::any_locals() {
            for text in self.sched.gate.without_task(|| drop_locals(key, TaskId(id))) {
                announce!(self.sched, KERNEL, Event::Warn { text: text.into() });
            }
        }
        // Last: a task that joins this one must find it gone, and its output in the cell.
        self.sched.end_joins(joins);
    }

    /// Stores the result of a task for its handle, and drops the body of the task. A panic in the
    /// drop is a `warn` line, which says `what` was dropped.
    pub(super) fn drop_body(&mut self, index: TaskIndex, how: End<'_>, what: &str) {
        let Some(mut body) = self.sched.tasks[index].body.take() else { return };
        let id = TaskId(self.sched.tasks.id(index));
        body.as_mut().end(how);
        let clear = || drop_of_task(id, what, || drop(body));
        if let Some(text) = self.sched.gate.without_task(clear) {
            announce!(self.sched, self.sched.tasks.label(index), Event::Warn { text: text.into() });
        }
    }

    /// Ends the waits and scopes that an ended task still has. Their futures were leaked, are in
    /// its output, or have moved to another task.
    fn release_all(&mut self, index: TaskIndex) {
        let has_waits = self.sched.gate.records().waits_of(index).next().is_some();
        if has_waits {
            self.withdraw_all(index);
        }
        self.close_scopes_of(index);
        self.handles.undefer(&mut self.sched, index, Why::Exit);
    }

    /// Passes on the content of a reply that was not read: readiness, a permit, or a job that has
    /// ended.
    fn return_reply(&mut self, trap: &Trap, reply: Reply) {
        match (reply, trap) {
            (Reply::Ready(urgent), Trap::Io { handle, direction }) => {
                self.handles.ready_again(&mut self.sched, *handle, *direction, urgent);
            }
            (Reply::Permit, Trap::Wait { queue, keep }) => self.sched.give_permit(queue, *keep),
            (Reply::Job(job), _) => self.sched.post_to_services(ServicePost::Orphan(job)),
            (other, _) => drop_quietly(other),
        }
    }
}
