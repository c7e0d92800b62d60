//! The trap table: every service of the kernel, one arm each.
//!
//! A handler never fails to a task and never takes the kernel down.

use traps::gate::Completion;
use traps::protocol::{Answer, Failure, Request, ScopeId, Site, TaskRef, Ticket, TrapResult};

use crate::emit::{drop_quietly, emit, quietly};
use crate::kernel::Kernel;
use crate::log;
use crate::longrun::Came;
use crate::machine::Machine;
use crate::pending::Source;
use crate::tasks::{Place, State};
use crate::timers::Rank;
use crate::trace::{Event, Op, Seq, WakeOp};
use crate::turn::Fired;
use crate::waits::{Entry, Over, Wait};

impl<M: Machine> Kernel<M> {
    /// Answers a request, or parks its ticket.
    #[inline]
    pub(crate) fn dispatch(&mut self, at: At, request: Request) {
        let At { task, ticket, scope, site } = at;
        if self.counts.traps >= self.inject.from {
            self.before_trap(at, &request);
        }
        if self.tasks.get(task).pending > 0 && self.can_be_interrupted(&request) {
            let from = self.scopes.find(scope).unwrap_or(traps::protocol::ROOT);
            if let Some(source) = self.scopes.take_pending(&mut self.tasks, task, from) {
                return self.refuse(at, request, source, from);
            }
        }
        match request {
            Request::Clock => {
                self.log.now = self.machine.now();
                let now = self.log.now;
                self.answer(task, ticket, Ok(Answer::Time(now)), Op::Clock, site);
            }
            Request::WallClock => {
                let wall = self.machine.wall();
                self.answer(task, ticket, Ok(Answer::Wall(wall)), Op::WallClock, site);
            }
            Request::CurrentTask => {
                self.answer(
                    task,
                    ticket,
                    Ok(Answer::Task(self.tasks.name_of(task))),
                    Op::CurrentTask,
                    site,
                );
            }
            Request::Deadline => {
                let found = self.in_force(scope);
                let op = Op::Deadline { until: found.map(|found| found.deadline) };
                self.answer(task, ticket, Ok(Answer::Deadline(found)), op, site);
            }
            Request::ConnectionDeadline => self.new_deadline(at),
            // One that was pending has been given above.
            Request::CheckInterrupt => {
                self.answer(task, ticket, Ok(Answer::Unit), Op::CheckInterrupt, site);
            }
            Request::HeldInterrupt => {
                let from = self.scopes.find(scope).unwrap_or(traps::protocol::ROOT);
                let held = self.scopes.held_for(task, from);
                let held = held.map(|source| self.interrupt(task, source, from));
                self.answer(task, ticket, Ok(Answer::Held(held)), Op::HeldInterrupt, site);
            }
            Request::Yield { spent } => {
                if spent {
                    emit!(self, task, Event::Yielded { budget: self.options.budget });
                }
                self.park(at, Wait::Yield { sleep: false }, || Op::Yield);
                self.scratch.yielded.push(ticket.index);
            }
            Request::Sleep { span } => {
                self.log.now = self.machine.now();
                let until = self.log.now + span;
                let op = || Op::Sleep { span, until };
                if span.is_zero() {
                    self.park(at, Wait::Yield { sleep: true }, op);
                    self.scratch.yielded.push(ticket.index);
                    return;
                }
                let number = self.park(at, Wait::Sleep { timer: None }, op);
                let rank = || Rank { class: 0, seq: number };
                let timer = self.timers.arm(until, Fired::sleep(ticket.index), self.log.now, rank);
                let entry = self.waits.get_mut(ticket.index).expect("parked above");
                entry.wait = Wait::Sleep { timer: Some(timer) };
            }
            Request::Io { handle, descriptor, kind, direction } => {
                self.wait_for_io(at, handle, descriptor, kind, direction);
            }
            Request::OpenScope { limit, kind } => self.open_scope(at, limit, kind),
            Request::Spawn(body) => {
                let site = body.site();
                let parent = self.tasks.get(task).id.get();
                let child = self.add_task(Place::Body(body), parent, site);
                self.gate.inherit_locals(self.tasks.name_of(task), child);
                if self.log.listening {
                    let name = self.tasks.label(child.index).1.to_owned();
                    let op = Op::Spawn { name: name.into() };
                    self.answer(task, ticket, Ok(Answer::Task(child)), op, site);
                } else {
                    // Nobody will see the operation, so its name is not copied.
                    self.answer(task, ticket, Ok(Answer::Task(child)), Op::CurrentTask, site);
                }
                let (parent, at) = (Some(parent), Some(log::site(site)));
                let event = Event::Spawn { parent, cause: None, at };
                let seq = emit!(self, child.index, event);
                self.make_ready(child.index, seq);
            }
            Request::Join { task: wanted, take } => self.join(at, wanted, take),
            Request::Cancel { task: wanted, reason } => {
                let op = Op::Cancel { task: wanted.serial.get(), reason: reason.into() };
                self.answer(task, ticket, Ok(Answer::Unit), op, site);
                let cause = self.log.seq;
                if let Some(found) = self.tasks.find(wanted) {
                    let by = self.tasks.name_of(task).id();
                    self.cancel_task(found, Some(by), reason, cause);
                }
            }
            Request::Wait { queue } => {
                let op = Op::Wait { queue: self.queue_number(&queue) };
                let ends = (queue.head.get(), queue.tail.get());
                queue.waiting.set(queue.waiting.get() + 1);
                self.park(at, Wait::Queue(queue.clone()), || op);
                let (head, tail) = self.waits.join_line(ends, ticket.index);
                queue.head.set(head);
                queue.tail.set(tail);
                // A permit may have been kept since the task looked.
                let permits = queue.permits.get();
                if permits > 0 && self.wake_queue(&queue, 1, self.log.seq) == 1 {
                    queue.permits.set(permits - 1);
                }
            }
            Request::Wake { queue, n } => {
                let op = Op::Wake { queue: self.queue_number(&queue), n };
                let count = self.will_wake(&queue, n);
                self.answer(task, ticket, Ok(Answer::Count(count)), op, site);
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
        }
    }

    /// Whether an interrupt may end this request. A join of a task that has ended does not block;
    /// to ask for an interrupt does not either, and gets it.
    fn can_be_interrupted(&self, request: &Request) -> bool {
        match request {
            Request::Join { task, .. } => {
                let joined = self.tasks.find(*task);
                joined.is_some_and(|joined| self.tasks.get(joined).state != State::Ended)
            }
            Request::CheckInterrupt => true,
            other => other.blocks(),
        }
    }

    /// Hands a task the result of a request that did not park.
    pub(crate) fn answer(
        &mut self,
        task: u32,
        ticket: Ticket,
        result: TrapResult,
        op: Op<'_>,
        site: Site,
    ) {
        emit!(self, task, {
            let outcome = log::outcome(&result);
            // The place is worth its room where a reader will look for it.
            let shows = result.is_err() || matches!(op, Op::SetTimeout { .. } | Op::Guard { .. });
            Event::Trap { op, outcome, cause: None, at: shows.then(|| log::site(site)) }
        });
        self.hand_over(task, ticket, result);
    }

    /// Answers a request with the interrupt that was pending for it.
    #[cold]
    fn refuse(&mut self, at: At, request: Request, source: Source, from: u32) {
        let At { task, ticket, site, .. } = at;
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
        match self.gate.complete(ticket, result) {
            Completion::Ready(None) => {}
            Completion::Ready(Some(waker)) => quietly(|| waker.wake()),
            Completion::Withdrawn(result) => {
                self.gate.forget(ticket);
                drop_quietly(result);
            }
        }
    }

    /// Parks a ticket; gives its number. `op` is for the log.
    #[inline]
    pub(crate) fn park<'o>(&mut self, at: At, wait: Wait, op: impl FnOnce() -> Op<'o>) -> u64 {
        let At { task, ticket, scope, site } = at;
        self.gate.park(ticket);
        let entry = self.waits.park(&mut self.tasks, task, ticket, scope, site, wait);
        let number = entry.number;
        // The line that is made next.
        entry.seq = self.log.seq + 1;
        let ran = self.ran();
        emit!(
            self,
            task,
            Event::Block { op: op(), ticket: Some(number), at: Some(log::site(site)) },
            ran
        );
        number
    }

    /// Ends a wait with a result: its task becomes ready. Gives false if the future was gone.
    pub(crate) fn complete(
        &mut self,
        index: u32,
        result: TrapResult,
        op: WakeOp,
        cause: Seq,
    ) -> bool {
        let Some(entry) = self.waits.end(&mut self.tasks, index) else { return false };
        let outcome = self.log.listening.then(|| log::outcome(&result));
        match self.gate.complete(entry.ticket, result) {
            Completion::Ready(waker) => {
                let ticket = entry.number;
                let event = Event::Wake { op, ticket: Some(ticket), cause };
                let seq = emit!(self, entry.task, event);
                if outcome.is_some() {
                    self.note_answer(entry.task, ticket, outcome);
                }
                self.came_from(entry, op);
                self.make_ready(entry.task, seq);
                if let Some(waker) = waker {
                    quietly(|| waker.wake());
                }
                true
            }
            Completion::Withdrawn(result) => {
                self.drop_unheard(entry, result);
                false
            }
        }
    }

    /// A result came for a future that is gone.
    #[cold]
    pub(crate) fn drop_unheard(&mut self, entry: Over, result: TrapResult) {
        emit!(self, entry.task, Event::Withdraw { ticket: entry.number });
        self.gate.forget(entry.ticket);
        drop_quietly(result);
    }

    /// For the `run` line to come.
    pub(crate) fn note_answer(
        &mut self,
        task: u32,
        ticket: u64,
        outcome: Option<crate::trace::Outcome<'static>>,
    ) {
        // A task that runs reads it in this run.
        let task = self.tasks.get_mut(task);
        if let Some(outcome) = outcome.filter(|_| task.state != State::Running) {
            let outcome = log::without_place(outcome);
            let news = task.news.get_or_insert_default();
            news.answered.push(crate::trace::Answered { ticket, outcome });
        }
    }

    pub(crate) fn complete_yield(&mut self, index: u32) {
        let Some(Entry { seq, wait: Wait::Yield { sleep }, .. }) = self.waits.get(index) else {
            return;
        };
        let (seq, sleep) = (*seq, *sleep);
        let (answer, op) = if sleep {
            (Answer::Time(self.log.now), WakeOp::Sleep)
        } else {
            (Answer::Unit, WakeOp::Yield)
        };
        self.complete(index, Ok(answer), op, seq);
    }

    /// The task's own waker was called.
    pub(crate) fn wake_task(&mut self, task: TaskRef, cause: Seq) {
        let Some(index) = self.tasks.find(task) else { return };
        match self.tasks.get(index).state {
            State::Parked => {
                let event = Event::Wake { op: WakeOp::Waker, ticket: None, cause };
                let seq = emit!(self, index, event);
                self.tasks.get_mut(index).came = Came::Waker;
                self.make_ready(index, seq);
            }
            State::Running => self.tasks.get_mut(index).woken = true,
            State::Ready | State::Ended => {}
        }
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
