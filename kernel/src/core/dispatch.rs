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

use traps::Time;
use traps::internal::protocol::{
    DeadlineEvent, Left, NewTask, Note, PermitEvent, Post, Reply, Rescoped, ScopeEvent, ScopeKind,
    ScopePost, Trap,
};
use traps::internal::scopes::{Fired, Scope, WaitState};
use traps::internal::table::{Queue, Site, TaskId, TaskRef, Ticket};

use super::tasks::Task;
use super::waits::call;
use super::{Core, Services};
use crate::log::{announce, emit, emit_for, words};
use crate::machine::Machine;
use crate::trace::{Event, Moved, Op, Outcome, Parent, Reg, Timer, Wait};

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

    /// Logs a trap that is answered at once. If the answer is an interrupt, the cause is the line
    /// of the scope that has fired.
    #[cold]
    fn log_answer(&mut self, task: u32, ticket: Ticket) {
        let (trap, site) = self.trap_of(ticket);
        let (op, outcome) = (self.op(&trap), self.outcome_of(ticket));
        let records = self.gate.records();
        let interrupt = records.waits[ticket.index].interrupt();
        let source = interrupt.and_then(|it| records.scopes.get(it.delivery().source));
        let cause = source.and_then(|scope| scope.fired.as_ref()).map(|fired| fired.line);
        let scope = records.logged_number_of(records.waits[ticket.index].scope);
        drop(records);
        let fails = cause.is_some() || matches!(outcome, Outcome::Error(_));
        let at = fails.then(|| words::site(site));
        let scope = self.unless_last(task, scope).filter(|_| cause.is_some());
        emit!(self, task, Event::Trap { op, scope, outcome, cause, at });
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
    pub(super) fn trap_of(&self, ticket: Ticket) -> (Trap, Site) {
        let records = self.gate.records();
        let wait = &records.waits[ticket.index];
        (wait.trap.clone(), wait.site)
    }

    /// Logs a wait that has just parked. The line is `block` if the task leaves the CPU and has no
    /// other wait.
    #[cold]
    fn log_wait(&mut self, task: u32, ticket: Ticket, reg: Option<Reg>) {
        let (trap, site) = self.trap_of(ticket);
        let op = self.op(&trap);
        let records = self.gate.records();
        let has_come = match &trap {
            Trap::Wait { queue, .. } => queue.over.get() || queue.permits.get() > 0,
            Trap::Join { task, .. } => records.scopes.get(*task).is_none(),
            _ => false,
        };
        let goes_on = has_come || self.run.goes_on || self.run.again || self.gate.has_filed();
        let leaves = !goes_on && records.is_only(self.tasks[task].root.index, ticket);
        let inside = records.logged_number_of(records.waits[ticket.index].scope);
        drop(records);
        let scope = self.unless_last(task, inside);
        if leaves && let Some(text) = self.circle_at(task, ticket) {
            announce!(self, self.tasks.label(task), Event::Warn { text: text.into() });
        }
        let number = self.log.number(ticket, inside);
        let wait = Wait { ticket: number, reg, scope, at: words::site(site) };
        self.run.parked |= leaves;
        if leaves {
            let ran = self.ran(task);
            emit!(self, task, Event::Block { op, wait: Some(wait) }, ran);
        } else {
            emit!(self, task, Event::Await { op, wait });
        }
    }
}

/// The scopes of a task as the reader of the log knows them.
impl<M: Machine> Core<M> {
    /// Returns the number of a scope for the log, or `None` if it is the default: the scope that
    /// the task has opened last, of those that are open.
    fn unless_last(&self, task: u32, scope: u64) -> Option<u64> {
        let open = self.tasks[task].rare.as_ref().and_then(|rare| rare.scopes.last());
        (open.copied().unwrap_or(0) != scope).then_some(scope)
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

    // ---- Scopes ----------------------------------------------------------------------------

    /// Logs the opening or the closing of a scope, with a `late` line if the scope closed with a
    /// value at or after its deadline.
    pub(super) fn log_scope(&mut self, post: &ScopePost) {
        let ScopePost { number, kind, deadline, event, .. } = *post;
        let Some(task) = self.find(post.task) else { return };
        match event {
            ScopeEvent::Opened { scope, now, site, parent } => {
                // A deadline that was given as a point in time has no reading of the clock.
                let now = if now == Time::ZERO { self.now } else { now };
                let op = words::opening(kind, deadline, now);
                if self.hook.is_set() && !matches!(kind, ScopeKind::Guard { slot: Some(_), .. }) {
                    self.before_trap(task, site, &op);
                }
                let (outcome, at) = (Outcome::Scope(number), Some(words::site(site)));
                let parent = self.unless_last(task, parent);
                self.tasks[task].rare().scopes.insert(number);
                let event = Event::Trap { op, scope: parent, outcome, cause: None, at };
                let line = emit!(self, task, event);
                if let Some(found) = self.gate.records().scopes.get_mut(scope) {
                    found.line = line;
                }
            }
            ScopeEvent::Closed(left) => {
                let (op, outcome) = (words::closing(kind, number), words::left(left));
                self.tasks[task].rare().scopes.remove(&number);
                let event = Event::Trap { op, scope: None, outcome, cause: None, at: None };
                emit!(self, task, event);
                if let Left::Value(at) = left
                    && deadline <= at
                {
                    let over = at.since(deadline);
                    emit!(self, task, Event::Late { scope: number, deadline, over });
                }
            }
        }
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

    // ---- The log ---------------------------------------------------------------------------

    fn log_note(&mut self, note: Note) {
        let acting = self.run.task;
        let event = match note {
            Note::Warning(text) => Event::Warn { text },
            Note::Cap(text) => Event::Cap { text },
            Note::Deadline(number, what, site) => return self.log_deadline(number, what, site),
            Note::Moved(handle, direction, bytes) => {
                Event::Io { alias: self.alias(handle), direction, bytes: bytes as u64 }
            }
            Note::Accepted(handle, connection, peer) => {
                let peer = peer.filter(|_| self.log.timed).map(|peer| peer.to_string().into());
                let (listener, connection) = (self.alias(handle), self.alias(connection));
                Event::Accept { listener, connection, peer }
            }
            Note::Joined(task) => Event::Join { task: task.0 },
            Note::Permit(kind, name, PermitEvent::Taken(site)) => {
                Event::Take { kind: kind.into(), name, at: Some(words::site(site)) }
            }
            Note::Permit(kind, name, PermitEvent::Given(holder)) => {
                let holder = self.find(holder).filter(|task| acting != Some(*task));
                let from = holder.map(|task| self.tasks[task].id);
                Event::Give { kind: kind.into(), name, from }
            }
            Note::Rescoped(what, scope) => {
                let what = match what {
                    Rescoped::Scope(number) => Moved::Scope(number),
                    // The line of a wait that is not dispatched yet names its scope, and a wait
                    // that has ended is in none.
                    Rescoped::Wait(ticket) if self.is_parked(ticket) => {
                        let Some(number) = self.log.moved(ticket, scope) else { return };
                        Moved::Wait(number)
                    }
                    Rescoped::Wait(_) => return,
                };
                Event::Move { what, scope }
            }
            Note::Said(text) => Event::Note { text },
            Note::Span(true, name) => Event::Enter { name },
            Note::Span(false, name) => Event::Leave { name },
        };
        // Log a warning or a hit limit even if only these are wanted.
        announce!(self, self.tasks.label_of(acting), event);
    }

    fn log_deadline(&mut self, number: u32, what: DeadlineEvent, site: Site) {
        let timer = Timer::Deadline(u64::from(number));
        let event = match what {
            DeadlineEvent::Made => {
                let outcome = Outcome::Deadline(u64::from(number));
                let op = Op::ConnectionDeadline;
                Event::Trap { op, scope: None, outcome, cause: None, at: None }
            }
            DeadlineEvent::Armed(until, phase) => {
                Event::Arm { timer, until, phase: phase.into(), at: Some(words::site(site)) }
            }
            DeadlineEvent::Disarmed => Event::Disarm { timer },
        };
        emit_for!(self, self.tasks.label_of(self.run.task), event);
        if self.log.listening {
            self.log.arm(number, matches!(what, DeadlineEvent::Armed(..)));
        }
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
