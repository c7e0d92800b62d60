//! The trap table: every service of the kernel, one arm each; and what posts do.
//!
//! A handler never fails to a task and never takes the kernel down.

use std::rc::Rc;

use traps::gate::Completion;
use traps::protocol::{
    Answer, Ended, Failure, Limit, Note, Post, QueueCore, Request, ScopeId, ScopeKind, Site,
    TaskRef, Ticket, TrapResult,
};
use traps::threads::Work;
use traps::{Signal, SignalSet, Time};

use crate::kernel::Kernel;
use crate::log;
use crate::machine::Machine;
use crate::tasks::{End, NONE, Place, State};
use crate::threads::Done;
use crate::timers::Rank;
use crate::trace::{Event, Op, Seq, WakeOp};
use crate::turn::{Fired, announce, drop_quietly, emit, emit_for, quietly};
use crate::waits::{Entry, Wait};

impl<M: Machine> Kernel<M> {
    /// Answers a request, or parks its ticket.
    pub(crate) fn dispatch(
        &mut self,
        ticket: Ticket,
        asker: TaskRef,
        scope: ScopeId,
        request: Request,
        site: Site,
    ) {
        let Some(task) = self.tasks.find(asker) else {
            self.gate.forget(ticket);
            return drop_quietly(request);
        };
        if self.tasks.get(task).pending > 0 && self.will_block(&request) {
            let from = self.scopes.find(scope).unwrap_or(traps::protocol::ROOT);
            if let Some(source) = self.scopes.take_pending(&mut self.tasks, task, from) {
                let interrupt = self.interrupt(task, source, from);
                self.count_delivery(task, source);
                let result = Err(Failure::Interrupt(interrupt));
                let op = self.shown(&request);
                drop_quietly(request);
                return self.answer(task, ticket, result, op, site);
            }
        }
        let at = At { task, ticket, scope, site };
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
                self.answer(task, ticket, Ok(Answer::Task(asker)), Op::CurrentTask, site);
            }
            Request::Deadline => {
                let from = self.scopes.find(scope).unwrap_or(traps::protocol::ROOT);
                let deadline = self.scopes.deadline(from);
                self.answer(task, ticket, Ok(Answer::Deadline(deadline)), Op::Deadline, site);
            }
            Request::Yield { spent } => {
                if spent {
                    emit!(self, task, Event::Yielded { budget: self.options.budget });
                }
                self.park(at, Wait::Yield { sleep: false }, Op::Yield);
                self.scratch.yielded.push(ticket.index);
            }
            Request::Sleep { span } => {
                self.log.now = self.machine.now();
                let until = self.log.now + span;
                let op = Op::Sleep { span, until };
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
                let parent = asker.serial.get();
                let child = self.tasks.add(Place::Body(body), parent, Some(site));
                if self.log.listening {
                    let name = self.tasks.label(child.index).1.to_owned();
                    let op = Op::Spawn { name: name.into() };
                    self.answer(task, ticket, Ok(Answer::Task(child)), op, site);
                } else {
                    self.answer(task, ticket, Ok(Answer::Task(child)), Op::Yield, site);
                }
                let event = Event::Spawn { parent: Some(parent), at: Some(log::site(site)) };
                let seq = emit!(self, child.index, event);
                self.make_ready(child.index, seq);
            }
            Request::Join { task: wanted, take } => self.join(at, wanted, take),
            Request::Cancel { task: wanted, reason } => {
                let op = Op::Cancel { task: wanted.serial.get(), reason: reason.into() };
                self.answer(task, ticket, Ok(Answer::Unit), op, site);
                let cause = self.log.seq;
                if let Some(found) = self.tasks.find(wanted) {
                    self.cancel_task(found, Some(asker.id()), reason, cause);
                }
            }
            Request::Wait { queue } => {
                let op = Op::Wait { queue: self.queue_number(&queue) };
                let ends = (queue.head.get(), queue.tail.get());
                queue.waiting.set(queue.waiting.get() + 1);
                self.park(at, Wait::Queue(queue.clone()), op);
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
            Request::Offload(work) => self.offload(at, work),
            Request::Signal(set) => self.wait_signal(at, set),
            Request::Foreign { external } => {
                self.external += usize::from(external);
                self.park(at, Wait::Foreign { external }, Op::Foreign { external });
            }
        }
    }

    /// Whether an interrupt may end this request. A join of a task that has ended does not block.
    fn will_block(&self, request: &Request) -> bool {
        match request {
            Request::Join { task, .. } => {
                let joined = self.tasks.find(*task);
                joined.is_some_and(|joined| self.tasks.get(joined).state != State::Ended)
            }
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
            let shows = result.is_err() || matches!(op, Op::SetTimeout { .. });
            Event::Trap { op, outcome, at: shows.then(|| log::site(site)) }
        });
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

    /// Parks a ticket; gives its number.
    pub(crate) fn park(&mut self, at: At, wait: Wait, op: Op<'_>) -> u64 {
        let At { task, ticket, scope, site } = at;
        self.gate.park(ticket);
        let entry = self.waits.park(&mut self.tasks, task, ticket, scope, site, wait);
        let number = entry.number;
        let at = Some(log::site(site)).filter(|_| self.log.listening);
        let seq = emit!(self, task, Event::Block { op, ticket: Some(number), at });
        self.waits.get_mut(ticket.index).expect("parked above").seq = seq;
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
        let Some(entry) = self.waits.remove(&mut self.tasks, index) else { return false };
        let outcome = self.log.listening.then(|| log::outcome(&result));
        match self.gate.complete(entry.ticket, result) {
            Completion::Ready(waker) => {
                let ticket = entry.number;
                let event = Event::Wake { op, ticket: Some(ticket), cause };
                let seq = emit!(self, entry.task, event);
                self.note_answer(entry.task, ticket, outcome);
                self.make_ready(entry.task, seq);
                if let Some(waker) = waker {
                    quietly(|| waker.wake());
                }
                true
            }
            Completion::Withdrawn(result) => {
                emit!(self, entry.task, Event::Withdraw { ticket: entry.number });
                self.gate.forget(entry.ticket);
                drop_quietly(result);
                false
            }
        }
    }

    /// For the `run` line to come.
    pub(crate) fn note_answer(
        &mut self,
        task: u32,
        ticket: u64,
        outcome: Option<crate::trace::Outcome<'static>>,
    ) {
        if let Some(outcome) = outcome {
            let outcome = log::without_place(outcome);
            self.scratch.answered.push((task, crate::trace::Answered { ticket, outcome }));
        }
    }

    pub(crate) fn take_answered(&mut self, task: u32) -> Vec<crate::trace::Answered<'static>> {
        let mut taken = Vec::new();
        let mut index = 0;
        while index < self.scratch.answered.len() {
            if self.scratch.answered[index].0 == task {
                taken.push(self.scratch.answered.remove(index).1);
            } else {
                index += 1;
            }
        }
        taken
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

    fn open_scope(&mut self, at: At, limit: Limit, kind: ScopeKind) {
        let At { task, ticket, scope, site } = at;
        let parent = self.scopes.find(scope).unwrap_or(traps::protocol::ROOT);
        let deadline = match limit {
            Limit::Never => Time::NEVER,
            Limit::After(span) => {
                self.log.now = self.machine.now();
                self.log.now + span
            }
            Limit::At(point) => {
                self.log.now = self.machine.now();
                point
            }
        };
        let index = self.scopes.open(&mut self.tasks, task, parent, kind, deadline, site);
        let scope = self.scopes.name_of(&self.tasks, task, index);
        let op = match kind {
            ScopeKind::Timeout => {
                let limited = deadline != Time::NEVER;
                let span = match limit {
                    Limit::After(span) => Some(span),
                    _ => limited.then(|| deadline.since(self.log.now)),
                };
                Op::SetTimeout { span, until: limited.then_some(deadline) }
            }
            ScopeKind::Branch => Op::Branch,
            ScopeKind::Shield => Op::Shield,
        };
        let answer = Answer::Scope { scope, deadline };
        self.answer(task, ticket, Ok(answer), op, site);
        self.scopes.get_mut(index).seq = self.log.seq;
        if kind == ScopeKind::Shield {
            emit!(self, task, Event::Shield { scope: scope.serial.get(), open: true });
        }
        if deadline != Time::NEVER {
            let rank = || Rank { class: 1, seq: scope.serial.get() };
            let timer = self.timers.arm(deadline, Fired::scope(index), self.log.now, rank);
            self.scopes.get_mut(index).timer = Some(timer);
        }
    }

    fn join(&mut self, at: At, wanted: TaskRef, take: bool) {
        let op = Op::Join { task: wanted.serial.get() };
        let found = self.tasks.find(wanted);
        match found {
            Some(task) if self.tasks.get(task).state != State::Ended => {
                let joined = self.tasks.get(task);
                let ends = (joined.first_joiner, joined.last_joiner);
                self.park(at, Wait::Join { task, take }, op);
                let ends = self.waits.join_line(ends, at.ticket.index);
                let joined = self.tasks.get_mut(task);
                (joined.first_joiner, joined.last_joiner) = ends;
            }
            _ => {
                let ended = found.map_or(Ended::Taken, |task| self.output_of(task, take));
                let result = Ok(Answer::Ended(ended));
                self.answer(at.task, at.ticket, result, op, at.site);
                if take {
                    emit!(self, at.task, Event::Join { task: wanted.serial.get() });
                }
            }
        }
    }

    /// What an ended task left, taken out of it if so asked.
    fn output_of(&mut self, task: u32, take: bool) -> Ended {
        let ended = self.tasks.get_mut(task);
        match ended.end.clone().expect("an ended task has an end") {
            End::Panicked(message) => Ended::Panicked(Box::new(message)),
            End::Dropped => Ended::Dropped,
            End::Output if !take => Ended::Output(None),
            End::Output => match std::mem::replace(&mut ended.place, Place::Away) {
                Place::Body(body) => Ended::Output(Some(body)),
                Place::Main | Place::Away => Ended::Taken,
            },
        }
    }

    /// First come, first served: the first joiner that asked for the output has it.
    pub(crate) fn wake_joiners(&mut self, task: u32, exit: Seq) {
        let id = self.tasks.get(task).id.get();
        loop {
            let joined = self.tasks.get(task);
            let index = joined.first_joiner;
            let Some(entry) = self.waits.get(index) else { break };
            let Wait::Join { take, .. } = entry.wait else {
                unreachable!("only joiners stand in this line")
            };
            let (joiner, after, ticket) = (entry.task, entry.line_after, entry.ticket);
            let joined = self.tasks.get_mut(task);
            joined.first_joiner = after;
            if after == NONE {
                joined.last_joiner = NONE;
            } else if let Some(next) = self.waits.get_mut(after) {
                next.line_before = NONE;
            }
            let take = take && !self.gate.is_withdrawn(ticket);
            let ended = self.output_of(task, take);
            self.complete(index, Ok(Answer::Ended(ended)), WakeOp::Join { task: id }, exit);
            if take {
                emit!(self, joiner, Event::Join { task: id });
            }
        }
    }

    // ---- Scheduling queues -----------------------------------------------------------------

    fn queue_number(&mut self, queue: &QueueCore) -> u64 {
        if queue.home.get() != self.epoch {
            self.queues += 1;
            queue.home.set(self.epoch);
            queue.number.set(self.queues);
        }
        queue.number.get()
    }

    /// How many a wake of `n` will reach.
    fn will_wake(&self, queue: &QueueCore, n: u64) -> u64 {
        let mut count = 0;
        let mut index = queue.head.get();
        while let Some(entry) = self.waits.get(index)
            && count < n
        {
            count += u64::from(!self.gate.is_withdrawn(entry.ticket));
            index = entry.line_after;
        }
        count
    }

    /// Wakes at most `n`, from the head; gives how many.
    pub(crate) fn wake_queue(&mut self, queue: &Rc<QueueCore>, n: u64, cause: Seq) -> u64 {
        let mut woken = 0;
        // No more than wait now: whoever is woken and waits again is at the tail.
        for _ in 0..queue.waiting.get() {
            if woken == n {
                break;
            }
            let index = queue.head.get();
            let Some(entry) = self.waits.get(index) else { break };
            let after = entry.line_after;
            queue.head.set(after);
            queue.waiting.set(queue.waiting.get() - 1);
            match self.waits.get_mut(after) {
                Some(next) => next.line_before = NONE,
                None => queue.tail.set(NONE),
            }
            let op = WakeOp::Wait { queue: queue.number.get() };
            woken += u64::from(self.complete(index, Ok(Answer::Unit), op, cause));
        }
        woken
    }

    // ---- Threads and signals ---------------------------------------------------------------

    fn offload(&mut self, at: At, work: Box<dyn Work>) {
        self.jobs.last += 1;
        let job = self.jobs.last;
        let mut on_thread = false;
        if let Some(work) = self.machine.run_job(job, work, &self.deliver) {
            on_thread = true;
            if let Err(error) = self.pool.submit(job, work) {
                drop_quietly(self.pool.withdraw(job));
                let result = Err(Failure::Refused(error));
                return self.answer(at.task, at.ticket, result, Op::Offload { job }, at.site);
            }
        }
        self.jobs.live.push((job, Some(at.ticket.index), on_thread));
        // Told from what the kernel knows, not from how quick the threads are.
        let running = self.jobs.live.len().min(self.options.threads);
        let queued = self.jobs.live.len() - running;
        emit!(
            self,
            at.task,
            Event::Offload {
                job,
                running: u32::try_from(running).unwrap_or(u32::MAX),
                queued: u32::try_from(queued).unwrap_or(u32::MAX),
            }
        );
        self.park(at, Wait::Job(job), Op::Offload { job });
    }

    pub(crate) fn job_done(&mut self, done: Done, cause: Seq) {
        let Done { job, work } = done;
        let Some(place) = self.jobs.live.iter().position(|(live, ..)| *live == job) else {
            return drop_quietly(work);
        };
        let (_, ticket, _) = self.jobs.live.remove(place);
        match ticket {
            Some(index) => {
                let seq = emit_for!(self, 1, "wakeup", Event::Done { job });
                self.complete(index, Ok(Answer::Job(work)), WakeOp::Offload { job }, seq);
            }
            None => {
                emit_for!(self, 1, "wakeup", Event::Orphan { job });
                drop_quietly(work);
            }
        }
        let _ = cause;
    }

    fn wait_signal(&mut self, at: At, set: SignalSet) {
        for signal in Signal::ALL {
            if set.contains(signal) && !self.signals.watched.contains(signal) {
                if let Err(error) = self.machine.watch_signal(signal) {
                    let result = Err(Failure::Refused(error));
                    return self.answer(at.task, at.ticket, result, Op::Signal, at.site);
                }
                self.signals.watched = self.signals.watched.with(signal);
            }
        }
        let kept = Signal::ALL
            .into_iter()
            .find(|signal| set.contains(*signal) && self.signals.kept.contains(*signal));
        if let Some(signal) = kept {
            self.signals.kept = self.signals.kept.without(signal);
            let result = Ok(Answer::Signal(signal));
            return self.answer(at.task, at.ticket, result, Op::Signal, at.site);
        }
        self.signals.waiting.push(at.ticket.index);
        self.park(at, Wait::Signal(set), Op::Signal);
    }

    pub(crate) fn arrive_signal(&mut self, signal: Signal) {
        let waits = &self.waits;
        let wants = |index: &u32| {
            let entry = waits.get(*index).expect("a waiting ticket is parked");
            matches!(entry.wait, Wait::Signal(set) if set.contains(signal))
        };
        match self.signals.waiting.iter().position(wants) {
            Some(place) => {
                let index = self.signals.waiting.remove(place);
                let seq = self.waits.get(index).expect("found above").seq;
                self.complete(index, Ok(Answer::Signal(signal)), WakeOp::Signal, seq);
            }
            None => self.signals.kept = self.signals.kept.with(signal),
        }
    }

    /// The task's own waker was called.
    pub(crate) fn wake_task(&mut self, task: TaskRef, cause: Seq) {
        let Some(index) = self.tasks.find(task) else { return };
        match self.tasks.get(index).state {
            State::Parked => {
                let event = Event::Wake { op: WakeOp::Waker, ticket: None, cause };
                let seq = emit!(self, index, event);
                self.make_ready(index, seq);
            }
            State::Running => self.tasks.get_mut(index).woken = true,
            State::Ready | State::Ended => {}
        }
    }

    // ---- Posts -----------------------------------------------------------------------------

    /// Does what a post says.
    pub(crate) fn heed(&mut self, post: Post) {
        // What a task posts is done by its run, whatever else has happened since.
        let acting = self.acting().map(|task| self.tasks.get(task).cause);
        let cause = acting.unwrap_or(self.log.seq).max(1);
        match post {
            Post::Withdraw(ticket) => {
                let known = self.waits.get(ticket.index);
                if known.is_some_and(|entry| entry.ticket == ticket) {
                    let task = self.waits.get(ticket.index).expect("known").task;
                    let number = self.waits.get(ticket.index).expect("known").number;
                    emit!(self, task, Event::Withdraw { ticket: number });
                    self.forget_wait(ticket.index);
                } else {
                    self.gate.forget(ticket);
                }
            }
            Post::Unread(interrupt) => self.unread(&interrupt),
            Post::Remember { handle, direction } => self.give_back(handle, direction),
            Post::Keep(signal) => self.arrive_signal(signal),
            Post::Rehome(ticket) => self.rehome(ticket),
            Post::RehomeScope { scope, task, parent } => {
                let index = self.scopes.find(scope);
                let parent = self.scopes.find(parent).unwrap_or(traps::protocol::ROOT);
                if let (Some(index), Some(task)) = (index, self.tasks.find(task))
                    && (parent == traps::protocol::ROOT || !self.scopes.is_within(index, parent))
                {
                    self.scopes.rehome(&mut self.tasks, index, task, parent);
                    for ticket in self.waits.of(&self.tasks, task) {
                        self.deliver_pending(ticket);
                    }
                }
            }
            Post::CloseScope { scope, in_time } => {
                if let Some(index) = self.scopes.find(scope)
                    && index != traps::protocol::ROOT
                {
                    self.close_scope(index, in_time);
                }
            }
            Post::Release { handle, descriptor, owner, sole } => {
                self.release(handle, descriptor, owner, sole);
            }
            Post::Detach(task) => {
                if let Some(index) = self.tasks.find(task) {
                    self.tasks.get_mut(index).detached = true;
                    if self.tasks.get(index).state == State::Ended {
                        drop_quietly(self.tasks.remove(index));
                    }
                }
            }
            Post::Woken(task) => self.wake_task(task, cause),
            Post::Permit { queue, keep } => {
                if self.wake_queue(&queue, 1, cause) == 0 && keep {
                    queue.permits.set(queue.permits.get() + 1);
                }
                drop_quietly(queue);
            }
            Post::Wake { queue, n } => {
                self.wake_queue(&queue, n, cause);
                drop_quietly(queue);
            }
            Post::Note(note) => self.write_note(note),
        }
    }

    fn write_note(&mut self, note: Note) {
        let index = self.acting();
        let event = match &note {
            Note::Warning(text) => Event::Warn { text: text.as_ref().into() },
            Note::Cap(text) => Event::Cap { text: text.as_ref().into() },
        };
        match index {
            Some(index) => {
                let (id, name) = self.tasks.label(index);
                announce!(self, id, name, event);
            }
            None => announce!(self, 0, "kernel", event),
        }
    }

    /// The task whose poll is being served.
    fn acting(&self) -> Option<u32> {
        self.running.filter(|index| self.tasks.get(*index).state == State::Running)
    }

    fn rehome(&mut self, ticket: Ticket) {
        let known = self.waits.get(ticket.index).is_some_and(|entry| entry.ticket == ticket);
        let Some((task, scope)) = self.gate.home(ticket).filter(|_| known) else { return };
        if let Some(task) = self.tasks.find(task) {
            self.waits.rehome(&mut self.tasks, ticket.index, task, scope);
            self.deliver_pending(ticket.index);
        }
    }

    /// Takes a ticket out of every table, as if it had never been filed.
    pub(crate) fn forget_wait(&mut self, index: u32) {
        let Some(entry) = self.waits.remove(&mut self.tasks, index) else { return };
        self.undo(&entry);
        self.gate.forget(entry.ticket);
        drop_quietly(entry);
    }

    /// Undoes what parking a ticket did beside the wait table.
    pub(crate) fn undo(&mut self, entry: &Entry) {
        let index = entry.ticket.index;
        match &entry.wait {
            Wait::Yield { .. } => self.scratch.yielded.retain(|ticket| *ticket != index),
            Wait::Sleep { timer } => {
                if let Some(timer) = timer {
                    self.timers.disarm(*timer);
                }
            }
            Wait::Io { handle, direction } => self.stop_waiting_for_io(*handle, *direction),
            Wait::Join { task, .. } => {
                let joined = self.tasks.get(*task);
                let ends = (joined.first_joiner, joined.last_joiner);
                let ends = self.waits.leave_line(ends, entry);
                let joined = self.tasks.get_mut(*task);
                (joined.first_joiner, joined.last_joiner) = ends;
            }
            Wait::Queue(queue) => {
                let ends = (queue.head.get(), queue.tail.get());
                let (head, tail) = self.waits.leave_line(ends, entry);
                queue.head.set(head);
                queue.tail.set(tail);
                queue.waiting.set(queue.waiting.get() - 1);
            }
            Wait::Job(job) => {
                let job = *job;
                if let Some(work) = self.pool.withdraw(job) {
                    self.jobs.live.retain(|(live, ..)| *live != job);
                    let what = format!("o{job}_before_it_ran").into();
                    emit!(self, entry.task, Event::Drop { what });
                    drop_quietly(work);
                } else if let Some(live) = self.jobs.live.iter_mut().find(|live| live.0 == job) {
                    live.1 = None;
                    emit!(self, entry.task, Event::Abandon { job });
                }
            }
            Wait::Signal(_) => self.signals.waiting.retain(|ticket| *ticket != index),
            Wait::Foreign { external } => self.external -= usize::from(*external),
        }
    }

    // ---- How requests and waits look in the log --------------------------------------------

    fn shown(&mut self, request: &Request) -> Op<'static> {
        match request {
            Request::Clock => Op::Clock,
            Request::WallClock => Op::WallClock,
            Request::CurrentTask => Op::CurrentTask,
            Request::Deadline => Op::Deadline,
            Request::Yield { .. } => Op::Yield,
            Request::Sleep { span } => Op::Sleep { span: *span, until: self.log.now + *span },
            Request::Io { handle, descriptor, kind, direction } => {
                let alias = self.registrations.of(*handle, *descriptor, *kind).alias;
                Op::Io { alias, direction: crate::registrations::shown(*direction) }
            }
            Request::OpenScope { .. } => Op::Branch,
            Request::Spawn(body) => Op::Spawn { name: body.name().to_owned().into() },
            Request::Join { task, .. } => Op::Join { task: task.serial.get() },
            Request::Cancel { task, reason } => {
                Op::Cancel { task: task.serial.get(), reason: (*reason).into() }
            }
            Request::Wait { queue } => Op::Wait { queue: self.queue_number(queue) },
            Request::Wake { queue, n } => Op::Wake { queue: self.queue_number(queue), n: *n },
            Request::Offload(_) => Op::Offload { job: self.jobs.last + 1 },
            Request::Signal(_) => Op::Signal,
            Request::Foreign { external } => Op::Foreign { external: *external },
        }
    }

    pub(crate) fn shown_wait(&self, entry: &Entry) -> String {
        match &entry.wait {
            Wait::Yield { .. } => "yield".to_owned(),
            Wait::Sleep { .. } => "sleep".to_owned(),
            Wait::Io { handle, direction } => {
                let alias = self.registrations.alias(*handle);
                let side = crate::registrations::shown(*direction);
                format!("io {} {side}", alias.map_or_else(|| "-".to_owned(), |a| a.to_string()))
            }
            Wait::Join { task, .. } => format!("join {}", self.tasks.label(*task).0),
            Wait::Queue(queue) => format!("wait q{}", queue.number.get()),
            Wait::Job(job) => format!("offload o{job}"),
            Wait::Signal(_) => "signal".to_owned(),
            Wait::Foreign { .. } => "foreign".to_owned(),
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
