//! The trap table: the kernel's action for each trap and for each post.
//!
//! [`Core::dispatch`] has one arm for each trap. An arm either *answers* the trap
//! ([`Core::answer`]: the reply is written into the record of the wait, and the task is polled
//! again at once) or *parks* the wait ([`Core::park`]: the record is marked, and the task leaves
//! the CPU). Before the arm is chosen, a trap that blocks takes the interrupt that is pending for
//! it, if there is one; then it does nothing else. A handler never fails: every error is a reply.
//!
//! For example, `Trap::Io` is answered with `Ready` if the descriptor is known to be ready, and
//! with `Busy` if another task waits for the same direction. Otherwise its descriptor is registered
//! with the poller if needed, and the wait is parked.
//!
//! [`Core::handle_post`] has one arm for each post. Posts come after every poll and after every
//! drop of a future, and may name things that no longer exist.
//!
//! A queue of waits is first in, first out. A permit that finds no waiter is stored, and the next
//! wait takes it. A new wait is served right after it has parked ([`Core::serve_newcomer`]). So no
//! wake is lost between a task's look at its condition and the parking of its wait.

use std::mem;
use std::rc::Rc;

use traps::internal::pending::Fired;
use traps::internal::protocol::{NewTask, Post, Reply, Trap};
use traps::internal::scopes::{Scope, WaitState};
use traps::internal::table::{Queue, Site, TaskId, TaskRef, Ticket};

use super::tasks::Task;
use super::waits::call;
use super::{Core, Services};
use crate::log::{emit, words};
use crate::machine::Machine;
use crate::trace::{Event, Op, Outcome, Parent, Reg};

impl<M: Machine> Core<M> {
    /// Looks a trap up in the trap table: answers it, or parks its wait. The wait keeps its trap.
    #[inline]
    pub(crate) fn dispatch(&mut self, task: u32, ticket: Ticket) {
        let records = self.gate.records();
        // The wait is gone if its future was dropped in the same poll.
        let Some(wait) = records.waits.get(ticket) else { return };
        let (trap, site) = (wait.trap.clone(), wait.site);
        drop(records);
        self.counts.traps += 1;
        if self.hook.is_set() {
            let op = self.op(&trap);
            self.before_trap(task, site, &op);
        }
        // A scope that fires before the wait is parked finds no parked wait here, and is pending.
        if let Some(interrupt) = self.pending_for(ticket, &trap) {
            return self.answer(task, ticket, Reply::Interrupt(interrupt));
        }
        match trap {
            Trap::Clock => {
                self.now = self.machine.now();
                self.answer(task, ticket, Reply::Time(self.now));
            }
            Trap::Check => {
                let reply = self.held(ticket).map_or(Reply::Done, Reply::Held);
                self.answer(task, ticket, reply);
            }
            Trap::Yield { spent } => {
                if spent {
                    emit!(self, task, Event::Yielded { budget: self.options.budget });
                }
                self.run.yields.push((ticket, false));
                self.park(task, ticket, None);
            }
            Trap::Sleep { span: 0, .. } => {
                self.run.yields.push((ticket, true));
                self.park(task, ticket, None);
            }
            Trap::Sleep { until, .. } => {
                self.timers.set_sleep(until, ticket);
                self.park(task, ticket, None);
            }
            Trap::Io { handle, direction } => {
                match self.wait_for_io(task, ticket, handle, direction) {
                    Ok(reg) => self.park(task, ticket, Some(reg)),
                    Err(reply) => self.answer(task, ticket, reply),
                }
            }
            Trap::Join { task: child, .. } => {
                self.stand_in_joins(child, ticket);
                self.park(task, ticket, None);
                // A post of the same poll may have ended it.
                self.serve_joiner(child, ticket);
            }
            Trap::Wait { queue, .. } => {
                self.stand_in(&queue, ticket);
                self.park(task, ticket, None);
                // The awaited event may have happened already.
                self.serve_newcomer(&queue);
            }
            Trap::Park { external, .. } => {
                self.external += usize::from(external);
                self.park(task, ticket, None);
            }
        }
    }

    /// Answers a trap with `reply`, without parking its wait. The task is polled again.
    fn answer(&mut self, task: u32, ticket: Ticket, reply: Reply) {
        let mut records = self.gate.records();
        let Some(wait) = records.waits.get_mut(ticket) else { return };
        wait.state = WaitState::Done(reply);
        let waker = wait.waker.take();
        drop(records);
        if self.log.listening {
            self.log_answer(task, ticket);
        }
        self.run.again = true;
        call(waker);
    }

    /// Parks a wait. `reg` is the change that the wait made to the registration of its descriptor.
    #[inline(always)]
    fn park(&mut self, task: u32, ticket: Ticket, reg: Option<Reg>) {
        self.gate.records().waits[ticket.index].state = WaitState::Parked;
        if self.log.listening {
            self.log_wait(task, ticket, reg);
        } else {
            self.run.parked = true;
        }
    }

    /// Returns the trap of a wait, and its call site.
    pub(crate) fn trap_of(&self, ticket: Ticket) -> (Trap, Site) {
        let records = self.gate.records();
        let wait = &records.waits[ticket.index];
        (wait.trap.clone(), wait.site)
    }
}

/// The reason for dropping a future whose grace period is over, in the log.
pub(crate) const OVER: &str = "its_grace_is_over";

impl<M: Machine> Core<M> {
    /// Handles a post: a message to the kernel that needs no reply.
    ///
    /// Its cause is the run of the task that posted. If no task runs, the cause is the last line.
    /// A post can cause further lines, so the cause is restored at its end.
    pub(crate) fn handle_post(&mut self, services: &mut impl Services<M>, post: Post) {
        let cause = self.log.cause;
        if self.run.task.is_none() {
            self.log.cause = self.log.seq;
        }
        match post {
            Post::Withdraw(ticket) => self.withdraw(ticket),
            Post::Spawn(new) => self.spawn(new),
            Post::Cancel { task, reason, order } => {
                let by = self.run.task.map(|task| TaskId(self.tasks[task].id));
                if let Some(index) = self.find(task) {
                    self.cancel(index, Fired::by_cancel(order, by, reason));
                }
            }
            Post::Drop(task) => self.drop_task(services, task, OVER),
            Post::Wake(queue, n) => {
                if self.log.listening {
                    self.log_notify(&queue, n);
                }
                self.wake(&queue, n);
            }
            Post::Permit(queue, keep) => self.give_permit(&queue, keep),
            Post::Woken(task) => self.wake_task(task),
            Post::PutBack(interrupt) => self.put_back(&interrupt),
            Post::PendAgain { source, place } => {
                self.gate.records().pend_again(source, place);
            }
            Post::Unpark(ticket) => {
                let is_stale = !self.unpark(ticket, Reply::Done);
                self.counts.stale += u64::from(is_stale);
            }
            Post::Scope(scope) => self.log_scope(&scope),
            Post::Register { handle, descriptor, kind } => {
                self.handles.add(handle, descriptor, kind);
            }
            Post::Close(handle) => self.close_handle(handle),
            Post::Release { handle, owner, sole } => self.release(handle, owner, sole),
            Post::Service(post) => services.post(self, post),
            Post::Note(note) => self.log_note(note),
        }
        self.log.cause = cause;
    }

    // ---- Tasks -----------------------------------------------------------------------------

    /// Makes the task that a spawn has requested, and puts it into the ready queue.
    fn spawn(&mut self, new: NewTask) {
        let NewTask { root, name, body } = new;
        let Scope { number, site, .. } = self.gate.records().scopes[root.index];
        let parent = self.run.task;
        self.counts.traps += 1;
        if let (Some(parent), true) = (parent, self.hook.is_set()) {
            self.before_trap(parent, site, &Op::Spawn { name: name.clone() });
        }
        let by = parent.map_or(0, |parent| self.tasks[parent].id);
        if let Some(parent) = parent {
            emit!(self, parent, {
                let (op, outcome) = (Op::Spawn { name: (*name).into() }, Outcome::Number(number));
                Event::Trap { op, scope: None, outcome, cause: None, at: None }
            });
        }
        let task = Task { parent: by, body: Some(body), ..Task::new(root, number, name) };
        let child = self.add_task(task);
        self.make_ready(child);
        emit!(self, child, {
            Event::Spawn { parent: Parent::Task(by), at: Some(words::site(site)) }
        });
    }
}

impl<M: Machine> Core<M> {
    /// Appends a wait to the list of waits for the end of a task, if the task has not ended.
    fn stand_in_joins(&mut self, task: TaskRef, ticket: Ticket) {
        if let Some(task) = self.find(task) {
            let (joins, mut records) = (&mut self.tasks[task].joins, self.gate.records());
            joins.push(&mut records.waits, ticket.index, |wait| &mut wait.in_queue);
        }
    }

    /// Ends a join that has just parked, if the joined task has ended.
    fn serve_joiner(&mut self, task: TaskRef, ticket: Ticket) {
        if self.find(task).is_none() {
            self.by_last_line(|core| _ = core.complete(ticket, Reply::Done));
        }
    }

    /// Appends a wait to a queue.
    pub(super) fn stand_in(&mut self, queue: &Queue, ticket: Ticket) {
        self.number(queue);
        let (mut line, mut records) = (queue.line.get(), self.gate.records());
        line.push(&mut records.waits, ticket.index, |wait| &mut wait.in_queue);
        queue.line.set(line);
        queue.len.set(queue.len.get() + 1);
    }

    /// Wakes a wait that has just parked in `queue`, if its event has happened or a permit is
    /// stored. Either may have come after the task checked.
    #[inline]
    pub(super) fn serve_newcomer(&mut self, queue: &Rc<Queue>) {
        if queue.over.get() {
            self.by_last_line(|core| _ = core.wake(queue, u64::MAX));
        } else if queue.take_permit() {
            self.by_last_line(|core| core.give_permit(queue, true));
        }
    }

    /// Calls `end`, which ends a wait that has just parked, with the log line of the wait as the
    /// cause.
    fn by_last_line(&mut self, end: impl FnOnce(&mut Self)) {
        let cause = mem::replace(&mut self.log.cause, self.log.seq);
        end(self);
        self.log.cause = cause;
    }

    /// Wakes the first waits in a queue, at most `n`. Returns how many.
    pub(crate) fn wake(&mut self, queue: &Rc<Queue>, n: u64) -> u64 {
        // The bound excludes a task that is woken here and waits again.
        let most = n.min(queue.len.get());
        for _ in 0..most {
            let Some(first) = queue.line.get().first() else { break };
            let mut records = self.gate.records();
            let ticket = records.waits.key(first);
            records.leave(queue, ticket);
            drop(records);
            self.complete(ticket, Reply::Permit);
        }
        most
    }

    /// Gives a permit to the first wait in a queue. If the queue is empty, stores the permit, but
    /// only if `keep` is true.
    pub(crate) fn give_permit(&mut self, queue: &Rc<Queue>, keep: bool) {
        if self.wake(queue, 1) == 0 && keep {
            queue.keep_permit();
        }
    }
}
