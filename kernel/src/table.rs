//! The trap table: every service of the kernel, one arm each.
//!
//! A handler never fails to a task and never takes the kernel down.

use std::mem;
use std::pin::Pin;
use std::time::Duration;

use traps::gate::{Completion, First};
use traps::protocol::{
    Answer, Birth, Body, Failure, ROOT, Request, ScopeId, Site, TaskRef, Ticket, TrapResult,
};

use crate::emit::{apart, drop_quietly, emit, emit_for, quietly};
use crate::kernel::Kernel;
use crate::log;
use crate::longrun::Came;
use crate::machine::Machine;
use crate::owner::Owner;
use crate::pending::Source;
use crate::timers::{Class, Rank};
use crate::trace::{Event, Op, Outcome};
use crate::waits::Wait;

impl<M: Machine> Kernel<M> {
    /// Answers a request, or parks its ticket. What schedulers and servers live on is inlined
    /// where a run is served; the rest is a call away.
    #[inline(always)]
    pub(crate) fn dispatch(&mut self, at: &At, request: Request) {
        if self.counts.traps >= self.inject.from {
            let op = self.shown(&request);
            self.before_trap(at.task, at.site, &op);
        }
        if self.scopes.is_any_pending() && self.tasks.get(at.task).pending > 0 {
            return self.dispatch_unless_pending(at, request);
        }
        self.dispatch_free(at, request);
    }

    /// The same where an interrupt may be pending.
    #[cold]
    fn dispatch_unless_pending(&mut self, at: &At, request: Request) {
        if let Some(request) = self.refuse_if_pending(at, request) {
            self.dispatch_free(at, request);
        }
    }

    /// The same where none is.
    #[inline(always)]
    fn dispatch_free(&mut self, at: &At, request: Request) {
        match request {
            Request::Yield { spent } => {
                // It holds nothing, which the compiler does not see everywhere.
                mem::forget(request);
                if spent {
                    emit!(self, at.task, Event::Yielded { budget: self.options.budget });
                }
                self.give_way(at, false, || Op::Yield);
            }
            Request::Io { handle, descriptor, kind, direction } => {
                mem::forget(request);
                self.wait_for_io(at, handle, descriptor, kind, direction);
            }
            Request::OpenScope { limit, kind } => self.open_scope(at, limit, kind),
            Request::Spawn { body } => self.spawn(at, body),
            Request::Join { task, take } => self.join(at, task, take),
            Request::Clock => {
                mem::forget(request);
                self.log.now = self.machine.now();
                self.answer(at, Ok(Answer::Time(self.log.now)), || Op::Clock);
            }
            Request::CurrentTask => {
                mem::forget(request);
                let name = self.tasks.name_of(at.task);
                self.answer(at, Ok(Answer::Task(name)), || Op::CurrentTask);
            }
            other => self.dispatch_other(at, other),
        }
    }

    /// The same for a request that is not the first of a poll.
    #[inline(never)]
    pub(crate) fn dispatch_again(&mut self, at: &At, request: Request) {
        self.dispatch(at, request);
    }

    #[inline(never)]
    fn dispatch_other(&mut self, at: &At, request: Request) {
        match request {
            Request::Sleep { span } => self.sleep(at, span),
            Request::WallClock => {
                let wall = self.machine.wall();
                self.answer(at, Ok(Answer::Wall(wall)), || Op::WallClock);
            }
            Request::Deadline => {
                let found = self.in_force(at.scope);
                let until = found.map(|found| found.deadline);
                self.answer(at, Ok(Answer::Deadline(found)), || Op::Deadline { until });
            }
            // One that was pending has been given above.
            Request::CheckInterrupt => {
                self.answer(at, Ok(Answer::Unit), || Op::CheckInterrupt);
            }
            Request::HeldInterrupt => {
                let from = self.scopes.find(at.scope).unwrap_or(ROOT);
                let held = self.scopes.held_for(at.task, from);
                let held = held.map(|source| self.interrupt(at.task, source, from));
                self.answer(at, Ok(Answer::Held(held)), || Op::HeldInterrupt);
            }
            Request::Cancel { task, reason } => self.cancel(at, task, reason),
            Request::Wait { queue } => self.wait_in_queue(at, queue),
            Request::Wake { queue, n } => {
                let op = Op::Wake { queue: self.queue_number(&queue), n };
                let count = self.will_wake(&queue, n);
                self.answer(at, Ok(Answer::Count(count)), || op);
                self.wake_queue(&queue, n, self.log.seq);
            }
            Request::Offload { work, limiter } => self.offload(at, work, limiter),
            Request::Signal(set) => self.wait_signal(at, set),
            Request::NextSignal(line) => self.next_signal(at, line),
            Request::Foreign { external } => {
                self.external += usize::from(external);
                self.park(at, Wait::Foreign { external }, || Op::Foreign { external });
            }
            Request::Outside { what, external } => self.wait_outside(at, what, external),
            Request::Yield { .. }
            | Request::Io { .. }
            | Request::OpenScope { .. }
            | Request::Spawn { .. }
            | Request::Join { .. }
            | Request::Clock
            | Request::CurrentTask => unreachable!("served by the caller"),
        }
    }

    /// An interrupt that is pending where a request was made ends it; else the request again.
    fn refuse_if_pending(&mut self, at: &At, request: Request) -> Option<Request> {
        if self.can_be_interrupted(&request) {
            let from = self.scopes.find(at.scope).unwrap_or(ROOT);
            if let Some(source) = self.scopes.take_pending(&mut self.tasks, at.task, from) {
                self.refuse(at, request, source, from);
                return None;
            }
        }
        Some(request)
    }

    fn sleep(&mut self, at: &At, span: Duration) {
        self.log.now = self.machine.now();
        let until = self.log.now + span;
        let op = || Op::Sleep { span, until };
        if span.is_zero() {
            return self.give_way(at, true, op);
        }
        let number = self.park(at, Wait::Sleep { timer: None }, op);
        let rank = || Rank { class: Class::Sleep, seq: number };
        let timer = self.timers.arm(until, Owner::sleep(at.ticket.index), self.log.now, rank);
        let entry = self.waits.get_mut(at.ticket.index).expect("parked above");
        entry.wait = Wait::Sleep { timer: Some(timer) };
    }

    #[inline(never)]
    fn spawn(&mut self, at: &At, body: Pin<Box<dyn Body>>) {
        let parent = self.tasks.get(at.task).id.get();
        let child = self.add_task(body, parent, false);
        self.gate.inherit_locals(self.tasks.name_of(at.task), child);
        if self.log.is_listening() {
            self.tell_spawn(self.tasks.name_of(at.task), child);
        } else {
            self.log.seq += 2;
        }
        self.hand_over(at.task, at.ticket, Ok(Answer::Task(child)));
        self.make_ready(child.index, self.log.seq, Came::Spawn);
    }

    /// The same where nobody waits for the answer.
    #[inline(never)]
    pub(crate) fn spawn_posted(&mut self, Birth { body, parent }: Birth) {
        self.counts.traps += 1;
        if self.counts.traps >= self.inject.from
            && let Some(by) = self.tasks.find(parent)
        {
            self.before_trap(by, body.site(), &Op::Spawn { name: body.name().into() });
        }
        let child = self.add_task(body, parent.serial.get(), true);
        if self.log.is_listening() {
            self.tell_spawn(parent, child);
        } else {
            self.log.seq += 2;
        }
        self.make_ready(child.index, self.log.seq, Came::Spawn);
    }

    #[cold]
    fn tell_spawn(&mut self, parent: TaskRef, child: TaskRef) {
        let by = self.tasks.find(parent);
        let parent = parent.serial.get();
        emit_for!(self, by.map_or((parent, "-"), |by| self.tasks.label(by)), {
            let op = Op::Spawn { name: self.tasks.label(child.index).1.into() };
            let outcome = Outcome::Number(child.serial.get());
            Event::Trap { op, outcome, cause: None, at: None }
        });
        emit!(self, child.index, {
            let at = self.tasks.site(child.index).map(log::site);
            Event::Spawn { parent: Some(parent), cause: None, at }
        });
    }

    fn cancel(&mut self, at: &At, wanted: TaskRef, reason: &'static str) {
        let task = wanted.serial.get();
        self.answer(at, Ok(Answer::Unit), || Op::Cancel { task, reason: reason.into() });
        let cause = self.log.seq;
        if let Some(found) = self.tasks.find(wanted) {
            let by = self.tasks.name_of(at.task).id();
            self.cancel_task(found, Some(by), reason, cause);
        }
    }

    /// Whether an interrupt may end this request. A join of a task that has ended does not block;
    /// to ask for an interrupt does not either, and gets it.
    fn can_be_interrupted(&self, request: &Request) -> bool {
        match request {
            Request::Join { task, .. } => {
                let joined = self.tasks.find(*task);
                joined.is_some_and(|joined| !self.tasks.get(joined).is_ended())
            }
            Request::CheckInterrupt => true,
            other => other.blocks(),
        }
    }

    /// Hands a task the result of a request that did not park. `op` is for the log.
    #[inline]
    pub(crate) fn answer<'o>(&mut self, at: &At, result: TrapResult, op: impl FnOnce() -> Op<'o>) {
        if self.log.is_listening() {
            return self.answer_told(at, result, op());
        }
        self.log.seq += 1;
        self.hand_over(at.task, at.ticket, result);
    }

    #[cold]
    fn answer_told(&mut self, at: &At, result: TrapResult, op: Op<'_>) {
        let outcome = log::outcome(&result);
        // The place is worth its room where a reader will look for it.
        let shows = result.is_err() || matches!(op, Op::SetTimeout { .. } | Op::Guard { .. });
        let site = shows.then(|| log::site(at.site));
        emit!(self, at.task, Event::Trap { op, outcome, cause: None, at: site });
        self.hand_over(at.task, at.ticket, result);
    }

    /// Answers a request with the interrupt that was pending for it.
    #[cold]
    fn refuse(&mut self, at: &At, request: Request, source: Source, from: u32) {
        let At { task, ticket, site, .. } = *at;
        let interrupt = self.interrupt(task, source, from);
        self.count_delivery(task, source);
        let op = self.shown(&request);
        drop_quietly(request);
        let cause = Some(self.behind(task, source));
        let result = Err(Failure::Interrupt(interrupt));
        emit!(self, task, {
            let outcome = log::outcome(&result);
            Event::Trap { op, outcome, cause, at: Some(log::site(site)) }
        });
        self.hand_over(task, ticket, result);
    }

    #[inline]
    fn hand_over(&mut self, task: u32, ticket: Ticket, result: TrapResult) {
        self.tasks.get_mut(task).answered = true;
        match self.gate.answer(ticket, result) {
            Completion::Ready(None) => {}
            Completion::Ready(Some(waker)) => quietly(|| waker.wake()),
            Completion::Withdrawn(result) => {
                self.gate.forget(ticket);
                drop_quietly(result);
            }
        }
    }

    /// Parks a ticket; gives its number. `op` is for the log.
    #[inline(always)]
    pub(crate) fn park<'o>(&mut self, at: &At, wait: Wait, op: impl FnOnce() -> Op<'o>) -> u64 {
        self.gate.park(at.ticket);
        // The line that is made next.
        let number = self.waits.park(&mut self.tasks, at, wait, self.log.seq + 1);
        if self.log.is_listening() {
            return apart(|| {
                let ran = self.ran(at.task);
                let (ticket, site) = (Some(number), Some(log::site(at.site)));
                emit!(self, at.task, Event::Block { op: op(), ticket, at: site }, ran);
                number
            });
        }
        self.log.seq += 1;
        number
    }
}

/// Where a request was made.
#[derive(Clone, Copy)]
pub(crate) struct At {
    pub(crate) task: u32,
    pub(crate) ticket: Ticket,
    pub(crate) scope: ScopeId,
    pub(crate) site: Site,
}

impl At {
    #[inline]
    pub(crate) fn first(task: u32, first: First) -> At {
        let First { ticket, scope, site } = first;
        At { task, ticket, scope, site }
    }
}
