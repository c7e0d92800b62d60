//! Posts: messages of tasks that need no answer, and how a wait is undone.
//!
//! Posts are handled after every poll and after every drop of a future. They may name things that
//! no longer exist.

use std::net::SocketAddr;

use traps::protocol::{
    Answer, DeadlineEvent, DeadlineNote, Direction, HandleId, Left, NewTask, Note, Opening, Owned,
    Post, ROOT, ScopeId, ScopeKind, Ticket,
};
use traps::threads::drop_quietly;
use traps::{TaskId, Time};

use crate::kernel::Kernel;
use crate::log::{self, announce, emit, emit_for};
use crate::machine::Machine;
use crate::ops::UNKNOWN;
use crate::scopes::Scope;
use crate::shutdown::OVER;
use crate::timers::Owner;
use crate::trace::{Alias, Event, Op, Outcome, Seq, Timer};
use crate::waits::On;

impl<M: Machine> Kernel<M> {
    /// Whether a post is for this kernel: the thing that it names exists here.
    pub(crate) fn knows(&self, post: &Post) -> bool {
        let knows_task = |task| self.tasks.find(task).is_some();
        match post {
            Post::Withdraw(ticket) | Post::SetWaker(ticket, _) | Post::WakeTicket(ticket) => {
                self.tasks.has(*ticket)
            }
            Post::Unread(task, _)
            | Post::CloseScope(task, ..)
            | Post::Disarm { task, .. }
            | Post::Detach(task)
            | Post::Cancel(task, _)
            | Post::Drop(task)
            | Post::Watch(task)
            | Post::Woken(task) => knows_task(*task),
            Post::Spawn(new) => knows_task(new.parent),
            Post::Remember(handle, _)
            | Post::Moved { handle, .. }
            | Post::Accepted { handle, .. }
            | Post::Close(handle)
            | Post::Release { handle, .. } => self.registrations.knows(*handle),
            Post::Permit { queue, .. } | Post::Wake { queue, .. } => {
                queue.home.get() == self.shared.epoch || queue.line.borrow().is_empty()
            }
            Post::OpenScope(_)
            | Post::Deadline(_)
            | Post::Register { .. }
            | Post::Keep(_)
            | Post::Orphan { .. }
            | Post::Note(_) => true,
        }
    }

    /// Handles a post.
    pub(crate) fn handle_post(&mut self, post: Post) {
        if !self.knows(&post) {
            return drop_quietly(self.gate.pass_on(post));
        }
        let cause = self.post_cause();
        match post {
            Post::Withdraw(ticket) => self.withdraw(ticket, cause),
            Post::SetWaker(ticket, waker) => self.set_waker(ticket, waker),
            Post::Unread(task, interrupt) => self.unread(task.index, &interrupt),
            Post::OpenScope(opening) => self.open_scope(&opening),
            Post::CloseScope(_, scope, left) => self.close_scope(scope, left),
            Post::Deadline(note) => self.log_deadline(note),
            Post::Disarm { task, slot } => self.disarm(task.index, slot),
            Post::Register { handle, descriptor, kind } => {
                self.registrations.add(handle, descriptor, kind);
            }
            Post::Remember(handle, direction) => self.give_back(handle.index, direction, cause),
            Post::Moved { handle, direction, bytes } => self.log_moved(handle, direction, bytes),
            Post::Accepted { handle, connection, peer } => {
                self.log_accepted(handle, connection, peer);
            }
            Post::Close(handle) => self.close_handle(handle, cause),
            Post::Release { handle, owner, sole } => self.release(handle, owner, sole, cause),
            Post::Keep(signal) => self.arrive_signal(signal, cause),
            Post::Orphan { job, task, site, work } => self.job_unheard(job, task, site, work),
            Post::Spawn(new) => self.spawn(new),
            Post::Detach(task) => {
                self.tasks[task.index].detached = true;
                if self.tasks[task.index].is_ended() {
                    self.remove_task(task.index);
                }
            }
            Post::Cancel(task, reason) => {
                let by = self.acting().map(|task| TaskId(self.tasks[task].id));
                self.cancel_task(task.index, by, reason, cause);
            }
            Post::Drop(task) => self.drop_task(task, OVER),
            Post::Woken(task) => self.wake_task(task, cause),
            Post::WakeTicket(ticket) => self.wake_ticket(ticket, cause),
            Post::Permit { queue, keep } => self.give_permit(&queue, keep, cause),
            Post::Wake { queue, n } => drop(self.wake_queue(&queue, n, cause)),
            Post::Watch(task) => self.tasks[task.index].watches_shutdown = true,
            Post::Note(note) => {
                let event = match &note {
                    Note::Warning(text) => Event::Warn { text: text.as_ref().into() },
                    Note::Cap(text) => Event::Cap { text: text.as_ref().into() },
                };
                announce!(self, self.tasks.label_of(self.acting()), event);
            }
        }
    }

    fn log_moved(&mut self, handle: HandleId, direction: Direction, bytes: usize) {
        let (alias, bytes) = (self.alias_of(handle), bytes as u64);
        let event = Event::Io { alias, direction, bytes };
        emit_for!(self, self.tasks.label_of(self.acting()), event);
    }

    fn log_accepted(
        &mut self,
        handle: HandleId,
        connection: HandleId,
        peer: Option<Box<SocketAddr>>,
    ) {
        let (listener, connection) = (self.alias_of(handle), self.alias_of(connection));
        let peer = peer.filter(|_| self.log.timed).map(|peer| peer.to_string().into());
        let event = Event::Accept { listener, connection, peer };
        emit_for!(self, self.tasks.label_of(self.acting()), event);
    }

    fn alias_of(&self, handle: HandleId) -> Alias {
        self.registrations.alias(handle.index).unwrap_or(UNKNOWN)
    }

    /// The line that causes what a post does: the run of the task that posted.
    fn post_cause(&self) -> Seq {
        let acting = self.acting().and_then(|task| self.tasks[task].rare.as_ref());
        acting.map_or(self.log.seq, |rare| rare.logged.cause).max(1)
    }

    /// The task whose poll is being served.
    pub(crate) fn acting(&self) -> Option<u32> {
        self.running.filter(|task| self.tasks[*task].state == crate::task::State::Running)
    }

    // ---- Waits -----------------------------------------------------------------------------

    /// The future of a wait was dropped. If it had received a value, the next waiter gets that.
    pub(crate) fn withdraw(&mut self, ticket: Ticket, cause: Seq) {
        let task = ticket.task;
        let number = self.log.number_of(&self.tasks[task], ticket.serial).0;
        let Some(wait) = self.tasks[task].take_wait(ticket.serial) else { return };
        if wait.on.is_parked() {
            emit!(self, task, Event::Withdraw { ticket: number });
            self.log.forget(&mut self.tasks[task], ticket.serial);
            return self.undo(ticket, wait.on);
        }
        match (wait.on, self.tasks[task].take_owned(ticket.serial)) {
            (On::IoReady(index, direction), _) => self.give_back(index, direction, cause),
            (On::Granted { keep }, Some(Owned::Queue(queue))) => {
                self.give_permit(&queue, keep, cause);
            }
            (On::Signalled(signal), Some(Owned::Stream(line))) => line.keep(signal),
            (On::Signalled(signal) | On::Answered(Answer::Signal(signal)), _) => {
                self.arrive_signal(signal, cause);
            }
            (On::Interrupted, Some(Owned::Interrupt(interrupt))) => {
                self.unread(task, &interrupt);
            }
            (_, Some(Owned::Job { job, task, work })) => {
                self.job_unheard(job, task, wait.site, work);
            }
            (_, owned) => drop_quietly(owned),
        }
    }

    /// Undoes what parking a wait changed outside its task's record.
    pub(crate) fn undo(&mut self, ticket: Ticket, on: On) {
        let owned = self.tasks[ticket.task].take_owned(ticket.serial);
        match on {
            On::Sleep(timer) => self.timers.cancel(timer),
            On::Io(index, direction) => self.stop_waiting_for_io(index, direction),
            On::Join(task, _) => self.leave_joiners(task, ticket),
            On::Queue { .. } => {
                if let Some(Owned::Queue(queue)) = owned {
                    queue.line.borrow_mut().retain(|other| *other != ticket);
                }
            }
            On::Job(job) => self.stop_waiting_for_job(ticket.task, job),
            On::Signal(_) | On::Stream => self.signals.waiting.retain(|it| *it != ticket),
            On::Foreign(external) | On::Outside(_, external) => {
                self.external -= usize::from(external);
            }
            _ => {}
        }
    }

    // ---- Scopes ----------------------------------------------------------------------------

    /// The running task has opened a scope.
    fn open_scope(&mut self, opening: &Opening) {
        let Opening { scope: ScopeId { number, .. }, kind, deadline, now, site, .. } = *opening;
        let Some(task) = self.acting() else {
            // The task ended in that poll.
            return self.gate.free_scope(opening.scope.index);
        };
        if !matches!(kind, ScopeKind::Guard { slot: Some(_), .. }) {
            self.counts.traps += 1;
            if self.hook.is_set() {
                let op = shown_scope(kind, deadline, now);
                self.before_trap(task, site, &op);
            }
        }
        self.log.now = self.log.now.max(now);
        let index = self.scopes.open(&mut self.tasks, task, opening);
        let seq = emit!(self, task, {
            let (op, outcome) = (shown_scope(kind, deadline, self.log.now), Outcome::Scope(number));
            Event::Trap { op, outcome, cause: None, at: Some(log::site(site)) }
        });
        let timer = (deadline != Time::NEVER)
            .then(|| self.timers.set(deadline, Owner::Scope(index), number));
        let scope = &mut self.scopes[index];
        (scope.seq, scope.timer) = (seq, timer);
    }

    /// Closes a scope. Its own interrupt is discarded, and enclosing deadlines that have passed are
    /// pending again.
    pub(crate) fn close_scope(&mut self, scope: ScopeId, left: Left) {
        let Some(index) = self.scopes.find(scope) else { return };
        let closed = self.scopes.close(&mut self.tasks, index);
        self.gate.free_scope(index);
        let Scope { task, parent, kind, deadline, number, .. } = closed;
        if let Some(timer) = closed.timer {
            self.timers.cancel(timer);
        }
        emit!(self, task, {
            let op = match kind {
                ScopeKind::Guard { slot: Some(_), .. } => Op::Unguard { scope: number },
                ScopeKind::Timeout | ScopeKind::Guard { .. } => Op::UnsetTimeout { scope: number },
                ScopeKind::Branch => Op::Unbranch { scope: number },
                ScopeKind::Shield => Op::Unshield { scope: number },
            };
            Event::Trap { op, outcome: log::left(left), cause: None, at: None }
        });
        if let Left::Value(at) = left
            && deadline <= at
            && self.log.listening
        {
            self.log.now = self.log.now.max(at);
            let over = at.since(deadline);
            emit!(self, task, Event::Late { scope: number, deadline, over });
        }
        let record = &mut self.tasks[task];
        record.sources -= u32::from(closed.fired.is_some());
        let is_timeout = matches!(kind, ScopeKind::Timeout | ScopeKind::Guard { .. });
        if record.sources > 0 && is_timeout && parent != ROOT {
            self.make_pending_again(task, parent);
        }
    }

    // ---- Connection deadlines --------------------------------------------------------------

    fn log_deadline(&mut self, DeadlineNote { number, what, site }: DeadlineNote) {
        let timer = Timer::Deadline(u64::from(number));
        let at = Some(log::site(site));
        let event = match what {
            DeadlineEvent::Made => {
                let outcome = Outcome::Deadline(u64::from(number));
                Event::Trap { op: Op::ConnectionDeadline, outcome, cause: None, at: None }
            }
            DeadlineEvent::Armed(until) => Event::Arm { timer, until, at },
            DeadlineEvent::Disarmed => Event::Disarm { timer },
        };
        let poster = self.acting();
        emit_for!(self, self.tasks.label_of(poster), event);
        if self.log.listening {
            self.log.arm(number, matches!(what, DeadlineEvent::Armed(_)));
        }
    }

    /// A connection deadline that fired is armed again, or disarmed. Its interrupt is discarded
    /// where it has not been delivered.
    fn disarm(&mut self, task: u32, slot: u32) {
        self.forget_deadline(task, slot);
        if let traps::deadline::Owner::Scope(index) = self.shared.deadlines.owner(slot)
            && self.scopes.guards(index, slot)
        {
            self.unfire(index);
        }
    }

    // ---- Tasks -----------------------------------------------------------------------------

    /// Makes a task for another task.
    fn spawn(&mut self, new: NewTask) {
        let (parent, site) = (new.parent.index, new.body.site());
        self.counts.traps += 1;
        if self.hook.is_set() {
            let op = Op::Spawn { name: new.body.name().to_owned().into() };
            self.before_trap(parent, site, &op);
        }
        let id = self.tasks[parent].id;
        let child = self.tasks.add(new, id);
        emit!(self, parent, {
            let (number, name) = self.tasks.label(child);
            let (op, outcome) = (Op::Spawn { name: name.into() }, Outcome::Number(number));
            Event::Trap { op, outcome, cause: None, at: None }
        });
        let seq = emit!(self, child, {
            Event::Spawn { parent: Some(id), cause: None, at: Some(log::site(site)) }
        });
        self.make_ready(child, seq);
    }
}

/// The opening of a scope, for the log.
pub(crate) fn shown_scope(kind: ScopeKind, deadline: Time, now: Time) -> Op<'static> {
    let until = (deadline != Time::NEVER).then_some(deadline);
    match kind {
        ScopeKind::Guard { slot: Some(_), number } => Op::Guard { deadline: u64::from(number) },
        ScopeKind::Timeout | ScopeKind::Guard { .. } => {
            Op::SetTimeout { span: until.map(|until| until.since(now)), until }
        }
        ScopeKind::Branch => Op::Branch,
        ScopeKind::Shield => Op::Shield,
    }
}
