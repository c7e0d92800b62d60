//! Posts: messages of tasks that need no reply.
//!
//! Posts are handled after every poll and after every drop of a future. They may name things that
//! no longer exist.

use traps::Time;
use traps::core::names::{ScopeId, Site, TaskId};
use traps::core::protocol::{
    ClosedScope, DeadlineEvent, Left, NewTask, Note, OpenedScope, Post, Reply, ScopeKind,
};
use traps::core::table::NONE;

use super::timers::Owner;
use super::{Core, Services};
use crate::log::{self, announce, emit, emit_for};
use crate::machine::Machine;
use crate::trace::{Event, Op, Outcome, Seq, Timer};

/// Why a future is dropped that would not end.
pub(crate) const OVER: &str = "its_grace_is_over";

impl<M: Machine> Core<M> {
    /// Handles a post.
    pub(crate) fn handle_post(&mut self, services: &mut impl Services<M>, post: Post) {
        let cause = self.post_cause();
        match post {
            Post::Withdraw(ticket) => self.withdraw(ticket, cause),
            Post::Spawn(new) => self.spawn(new),
            Post::Cancel(task, reason) => {
                let by = self.run.task.map(|task| TaskId(self.tasks[task].id));
                if let Some(index) = self.find(task) {
                    self.cancel(index, by, reason, cause);
                }
            }
            Post::Drop(task) => self.drop_task(services, task, OVER),
            Post::Wake(queue, n) => drop(self.wake(&queue, n, cause)),
            Post::Permit(queue, keep) => self.give_permit(&queue, keep, cause),
            Post::Woken(task) => self.wake_task(task, cause),
            Post::Unpark(ticket) => {
                let is_stale = !self.unpark(ticket, Reply::Done, cause);
                self.counts.stale += u64::from(is_stale);
            }
            Post::Set(scope) => self.set_deadline(scope),
            Post::Opened(opened) => self.log_opened(&opened),
            Post::Unset(scope, timer) => self.timers.cancel_of(timer, Owner::Scope(scope)),
            Post::Closed(closed) => self.log_closed(&closed),
            Post::Register { handle, descriptor, kind } => {
                self.handles.add(handle, descriptor, kind);
            }
            Post::Close(handle) => self.close_handle(handle, cause),
            Post::Release { handle, owner, sole } => self.release(handle, owner, sole, cause),
            Post::Service(post) => services.post(self, post),
            Post::Note(note) => self.log_note(note),
        }
    }

    /// The line that causes what a post does: the run of the task that posted.
    fn post_cause(&self) -> Seq {
        let acting = self.run.task.and_then(|task| self.tasks[task].rare.as_ref());
        acting.map_or(self.log.seq, |rare| rare.cause).max(1)
    }

    // ---- Scopes ----------------------------------------------------------------------------

    /// Sets the timer of a scope that is still open.
    fn set_deadline(&mut self, scope: ScopeId) {
        let mut records = self.gate.records();
        if let Some(found) = records.scopes.get_mut(scope)
            && found.timer == NONE
        {
            found.timer = self.timers.set(found.deadline, Owner::Scope(scope), found.number);
        }
    }

    fn log_opened(&mut self, opened: &OpenedScope) {
        let OpenedScope { scope, task, number, kind, deadline, now, site } = *opened;
        let Some(task) = self.find(task) else { return };
        self.now = self.now.max(now);
        // A deadline that was given as a point in time came without a reading of the clock.
        let op = shown_scope(kind, deadline, if now == Time::ZERO { self.now } else { now });
        if self.hook.is_set() && !matches!(kind, ScopeKind::Guard { slot: Some(_), .. }) {
            self.before_trap(task, site, &op);
        }
        let line = emit!(self, task, {
            let outcome = Outcome::Scope(number);
            Event::Trap { op, outcome, cause: None, at: Some(log::site(site)) }
        });
        if let Some(found) = self.gate.records().scopes.get_mut(scope) {
            found.line = line;
        }
    }

    pub(super) fn log_closed(&mut self, closed: &ClosedScope) {
        let ClosedScope { task, number, kind, deadline, left } = *closed;
        let Some(task) = self.find(task) else { return };
        emit!(self, task, {
            let op = match kind {
                ScopeKind::Guard { slot: Some(_), .. } => Op::Unguard { scope: number },
                ScopeKind::Branch => Op::Unbranch { scope: number },
                ScopeKind::Shield => Op::Unshield { scope: number },
                _ => Op::UnsetTimeout { scope: number },
            };
            Event::Trap { op, outcome: log::left(left), cause: None, at: None }
        });
        if let Left::Value(at) = left
            && deadline <= at
        {
            self.now = self.now.max(at);
            let over = at.since(deadline);
            emit!(self, task, Event::Late { scope: number, deadline, over });
        }
    }

    // ---- Tasks -----------------------------------------------------------------------------

    /// Makes a task for another task.
    fn spawn(&mut self, new: NewTask) {
        let site = new.body.site();
        let parent = self.find(new.parent);
        self.counts.traps += 1;
        if let (Some(parent), true) = (parent, self.hook.is_set()) {
            let op = Op::Spawn { name: new.body.name().to_owned().into() };
            self.before_trap(parent, site, &op);
        }
        let by = parent.map_or(0, |parent| self.tasks[parent].id);
        let child = self.tasks.add(new.root, new.id.0, by, Some(new.body));
        self.gate.records().scopes[new.root.index].task = child;
        if let Some(parent) = parent {
            emit!(self, parent, {
                let (number, name) = self.tasks.label(child);
                let (op, outcome) = (Op::Spawn { name: name.into() }, Outcome::Number(number));
                Event::Trap { op, outcome, cause: None, at: None }
            });
        }
        let seq = emit!(self, child, {
            Event::Spawn { parent: Some(by), cause: None, at: Some(log::site(site)) }
        });
        self.make_ready(child, seq);
    }

    // ---- The log ---------------------------------------------------------------------------

    fn log_note(&mut self, note: Note) {
        let acting = self.run.task;
        let event = match note {
            Note::Warning(text) => Event::Warn { text },
            Note::Cap(text) => Event::Cap { text },
            Note::PutBack(task, interrupt) => {
                let Some(task) = self.find(task) else { return };
                return self.log_put_back(task, &interrupt);
            }
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
            Note::Said(text) => Event::Note { text },
            Note::Span(true, name) => Event::Enter { name },
            Note::Span(false, name) => Event::Leave { name },
        };
        // A warning and a limit are worth a line even if only these are wanted.
        announce!(self, self.tasks.label_of(acting), event);
    }

    fn log_deadline(&mut self, number: u32, what: DeadlineEvent, site: Site) {
        let timer = Timer::Deadline(u64::from(number));
        let event = match what {
            DeadlineEvent::Made => {
                let outcome = Outcome::Deadline(u64::from(number));
                Event::Trap { op: Op::ConnectionDeadline, outcome, cause: None, at: None }
            }
            DeadlineEvent::Armed(until, phase) => {
                Event::Arm { timer, until, phase: phase.into(), at: Some(log::site(site)) }
            }
            DeadlineEvent::Disarmed => Event::Disarm { timer },
        };
        emit_for!(self, self.tasks.label_of(self.run.task), event);
        if self.log.listening {
            self.log.arm(number, matches!(what, DeadlineEvent::Armed(..)));
        }
    }
}

/// The opening of a scope, for the log.
fn shown_scope(kind: ScopeKind, deadline: Time, now: Time) -> Op<'static> {
    let until = (deadline != Time::NEVER).then_some(deadline);
    match kind {
        ScopeKind::Guard { slot: Some(_), number } => Op::Guard { deadline: u64::from(number) },
        ScopeKind::Branch => Op::Branch,
        ScopeKind::Shield => Op::Shield,
        _ => Op::SetTimeout { span: until.map(|until| until.since(now)), until },
    }
}
