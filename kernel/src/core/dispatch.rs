//! The trap table: the kernel's action for each trap and for each post.
//!
//! [`Core::dispatch`] has one arm for each trap. An arm either *answers* the trap
//! ([`Sched::answer`]: the reply is written into the record of the wait, and the task is polled
//! again at once) or *parks* the wait ([`Sched::park`]: its line is written, and the task leaves
//! the CPU; `dispatch` has marked the record as parked before it chose the arm). Before the arm is
//! chosen, a trap that blocks, or is `Check`, takes the interrupt that is pending for it, if there
//! is one; then it does nothing else. A handler never fails: every error is a reply.
//!
//! For example, `Trap::Io` is answered with `Ready` if the descriptor is known to be ready, and
//! with `Busy` if another task waits for the same direction. Otherwise its descriptor is registered
//! with the poller if needed, and the wait is parked.
//!
//! [`Core::handle_post`] has one arm for each post. The kernel may get a post after any poll and
//! after any drop of a future. What it names may be gone.
//!
//! A queue of waits is first in, first out. A permit that finds no waiter is stored, and the next
//! wait takes it. A new wait is served right after it has parked ([`Sched::grant_if_available`]).
//! So no wake is lost between checking a condition and parking.

use traps::internal::gate::Filed;
use traps::internal::protocol::{End, NewTask, Post, Reply, Trap};
use traps::internal::records::{TaskRecord, WaitState};
use traps::internal::source::Fired;
use traps::internal::table::{TaskId, TaskIndex, TaskRef, Ticket};

#[cfg(doc)]
use super::sched::Sched;
use super::tasks::KernelTask;
use super::{Core, Services};
use crate::log::lines::emit;
use crate::log::words;
use crate::machine::Machine;
use crate::trace::{Event, Op, Outcome, Parent};

impl<M: Machine> Core<M> {
    /// Looks a trap up in the trap table: answers it, or parks its wait. The wait keeps its trap.
    #[inline]
    pub(crate) fn dispatch(&mut self, task: TaskIndex, ticket: Ticket) {
        // Before the look for an interrupt: what the hook injects must end this very trap.
        if self.hook.is_set() {
            self.before_dispatch(task, ticket);
        }
        let mut records = self.sched.gate.records();
        let has_any_fired = records.sources > 0;
        // A `race` may have dropped the future in the same poll. Then no one wants the reply, and
        // the trap must have no effect.
        let Some(wait) = records.waits.get_mut(ticket) else { return };
        // A copy, because the arms change the records. It costs a reference count at most.
        let trap = wait.trap.clone();
        // Mark the wait as parked here, at its only look-up. If its trap is answered below, the
        // answer replaces the mark, and no scope fires in between.
        wait.state = WaitState::Parked;
        drop(records);
        self.sched.traps += 1;
        // Usually no scope has fired. Then this test is all that interrupts cost a trap.
        if has_any_fired && let Some(interrupt) = self.pending_for(ticket, &trap) {
            return self.sched.answer(task, ticket, Reply::Interrupt(interrupt));
        }
        match trap {
            Trap::Clock => {
                // The turn goes on with this reading, so that no later line of the log has an
                // earlier time.
                self.sched.now = self.sched.machine.now();
                self.sched.answer(task, ticket, Reply::Time(self.sched.now));
            }
            Trap::Check => {
                let reply = self.held(ticket).map_or(Reply::Done, Reply::Held);
                self.sched.answer(task, ticket, reply);
            }
            Trap::Yield { spent } => {
                if spent {
                    emit!(self.sched, task, Event::Yielded { budget: self.options.budget });
                }
                self.sched.run.yields.push((ticket, false));
                self.sched.park(task, ticket, None);
            }
            Trap::Sleep { span: 0, .. } => {
                // Not into the heap: a timer of zero length would be due in the same turn, before
                // the tasks that are ready now have run.
                self.sched.run.yields.push((ticket, true));
                self.sched.park(task, ticket, None);
            }
            Trap::Sleep { until, .. } => {
                self.timers.set_sleep(until, ticket);
                self.sched.park(task, ticket, None);
            }
            Trap::Io { handle, direction } => {
                match self.handles.wait(&mut self.sched, task, ticket, handle, direction) {
                    Ok(reg) => self.sched.park(task, ticket, Some(reg)),
                    Err(reply) => self.sched.answer(task, ticket, reply),
                }
            }
            Trap::Join { task: child, .. } => {
                self.sched.enqueue_join(child, ticket);
                self.sched.park(task, ticket, None);
                // A post of the same poll, a `drop` for example, may have ended the task since
                // the trap was filed. Park first all the same, so that the log shows a wait and its
                // end as always.
                self.sched.complete_if_ended(child, ticket);
            }
            Trap::Wait { queue, .. } => {
                self.sched.enqueue(&queue, ticket);
                self.sched.park(task, ticket, None);
                // The event may have happened between the check and the parking: the task checked
                // in its poll, and other tasks or posts may have run since.
                self.sched.grant_if_available(&queue);
            }
            Trap::Park { external, .. } => {
                self.sched.external += usize::from(external);
                self.sched.park(task, ticket, None);
            }
        }
    }
}

/// The reason for dropping a future whose grace period is over, in the log.
pub(crate) const OVER: &str = "its_grace_is_over";

impl<M: Machine> Core<M> {
    /// Handles a post.
    ///
    /// In the log, the cause of a post is the run of the task that posted. If no task runs, a waker
    /// or a destructor has posted, and the cause is the last line, which tells why that was called.
    pub(super) fn handle_post(&mut self, services: &mut impl Services<M>, post: Post) {
        // A post may write lines of its own, each the cause of the next. The posts after it still
        // come from the same run.
        let cause = self.sched.log.cause;
        if self.sched.run.task.is_none() {
            self.sched.log.cause = self.sched.log.seq;
        }
        match post {
            Post::Withdraw(ticket) => self.withdraw(ticket),
            Post::Spawn(new) => self.spawn(new),
            Post::Cancel { task, reason, order } => {
                let by = self.sched.run.task.map(|task| TaskId(self.sched.tasks.id(task)));
                if let Some(index) = self.sched.find(task) {
                    self.cancel(index, Fired::by_cancel(order, by, reason));
                }
            }
            Post::Drop(task) => self.drop_task(services, task, OVER),
            Post::Wake(queue, n) => {
                // Before the waits leave the queue, because the line counts them.
                if self.sched.log.listening {
                    self.sched.log_notify(&queue, n);
                }
                self.sched.wake(&queue, n);
            }
            Post::Permit(queue, keep) => self.sched.give_permit(&queue, keep),
            Post::Woken(task) => self.sched.wake_task(task),
            Post::Repend(interrupt) => self.repend(&interrupt),
            Post::RependNow { source, place } => {
                self.sched.gate.records().repend_now(source, place);
            }
            Post::Unpark(ticket) => {
                let is_stale = !self.sched.unpark(ticket, Reply::Done);
                self.sched.stale += u64::from(is_stale);
            }
            Post::Scope(scope) => {
                self.before_scope(&scope);
                self.sched.log_scope(&scope);
            }
            Post::Register { handle, descriptor, kind } => {
                self.sched.log.names.add_handle(handle, kind);
                self.handles.add(handle, descriptor);
            }
            Post::Close(handle) => self.handles.close(&mut self.sched, handle),
            Post::Release { handle, owner, sole } => {
                self.handles.release(&mut self.sched, handle, owner, sole);
            }
            Post::Service(post) => services.post(self, post),
            Post::Note(note) => self.sched.log_note(&note),
        }
        self.sched.log.cause = cause;
    }

    /// Makes the task that a spawn has requested, and puts it into the ready queue.
    fn spawn(&mut self, new: NewTask) {
        let NewTask { task, name, body } = new;
        let TaskRecord { number, site, .. } = self.sched.gate.records().tasks[task.index];
        let parent = self.sched.run.task;
        // In the log a spawn is a trap that answers, so the counter and the hook count it.
        self.sched.traps += 1;
        if let (Some(parent), true) = (parent, self.hook.is_set()) {
            self.before_trap(parent, site, &Op::Spawn { name: name.clone() });
        }
        let by = parent.map_or(0, |parent| self.sched.tasks.id(parent));
        if let Some(parent) = parent {
            emit!(self.sched, parent, {
                let (op, outcome) = (Op::Spawn { name: (*name).into() }, Outcome::Number(number));
                Event::Trap { op, scope: None, outcome, cause: None, at: None }
            });
        }
        debug_assert!(self.sched.find(task).is_none(), "a task is spawned once");
        let new = KernelTask { parent: by, body: Some(body), ..KernelTask::new(task, name) };
        let child = self.sched.tasks.add(task, new);
        self.sched.make_ready(child);
        emit!(self.sched, child, {
            Event::Spawn { parent: Parent::Task(by), at: Some(words::site(site)) }
        });
    }

    /// Ends a task by dropping its future, unless the task is running. A running task stays; who
    /// asked for the drop finds it alive.
    pub(crate) fn drop_task(
        &mut self,
        services: &mut impl Services<M>,
        task: TaskRef,
        why: &'static str,
    ) {
        let Some(index) = self.sched.find(task) else { return };
        // A running task cannot be dropped: its future is being polled further up the stack.
        if self.sched.run.task != Some(index) {
            let line = emit!(self.sched, index, Event::Drop { why: why.into() });
            self.drop_body(index, End::Dropped, "future");
            // The destructors may have posted: they may have released a lock, or closed a scope.
            // These posts belong in front of the end of the task.
            self.serve_posts(services);
            self.sched.log.cause = line;
            self.end_task(index, End::Dropped);
        }
    }

    /// Drops the remaining tasks, newest first.
    pub(crate) fn drop_tasks(&mut self, services: &mut impl Services<M>, why: &'static str) {
        let tasks = self.sched.tasks.newest_first(0).into_iter();
        let tasks: Vec<TaskRef> = tasks.map(|index| self.sched.tasks.key(index)).collect();
        for task in tasks {
            self.drop_task(services, task, why);
        }
    }

    /// Serves the filed posts, and discards the traps: their task has panicked or is dropped.
    pub(super) fn serve_posts(&mut self, services: &mut impl Services<M>) {
        for filed in self.sched.gate.take_filed() {
            if let Filed::Post(post) = filed {
                self.handle_post(services, post);
            }
        }
    }
}
