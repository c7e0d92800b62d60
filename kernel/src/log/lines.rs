//! The lines that the core writes: what each decision looks like in the log.
//!
//! The core calls these methods where it has decided something. They change nothing that a program
//! could see: the log, its numbers and, in a timed log, the reading of the clock.

use std::mem;
use std::rc::Rc;

use traps::Interrupt;
use traps::Time;
use traps::internal::protocol::{
    DeadlineEvent, Left, Note, PermitEvent, Rescoped, ScopeEvent, ScopeKind, ScopePost, Trap,
};
use traps::internal::records::WaitState;
use traps::internal::table::{Primitive, Queue, ScopeId, TaskIndex, Ticket};

use crate::core::sched::Sched;
use crate::core::tasks::TaskState;
use crate::log::{KERNEL, words};
use crate::machine::Machine;
use crate::trace::{Answered, Event, LoggedWait, Moved, Op, Outcome, Reg, Seq, Timed, Timer};

/// The primitives that keep what a wake is about, so that a task that waits later finds it. A wake
/// of them that reaches no task is not lost, and has no line.
const KEPT: [&str; 9] =
    ["mpsc", "oneshot", "broadcast", "watch", "queue", "group", "barrier", "rwlock", "pipe"];

impl<M: Machine> Sched<M> {
    /// Writes the `run` line of a task to the log.
    pub(crate) fn log_run(&mut self, index: TaskIndex) {
        debug_assert!(self.run.task == Some(index), "a run has its line when it has the CPU");
        // The list of answers goes back at the end, so that a run of a traced task allocates
        // nothing once it has grown.
        let rare = self.tasks[index].rare();
        let (cause, left, mut answered) = (rare.cause, rare.left, mem::take(&mut rare.answered));
        let waited = self.now.since(self.tasks[index].since);
        let timed = Some(Timed { waited: Some(waited), ..Timed::default() });
        let parked = left.map(|left| self.now.since(left));
        let answers = &answered[..];
        emit!(
            self,
            index,
            Event::Run { cause, messages: 0, parked, answered: answers.into() },
            timed
        );
        answered.clear();
        let rare = self.tasks[index].rare();
        rare.answered = answered;
        if self.log.flight.is_some() {
            rare.answers.clear();
        }
    }

    /// Reads the clock, and returns the time for which the running task has had the CPU. Returns
    /// `None` without a reading if the trace is not timed, or for a task that does not run.
    pub(crate) fn ran(&mut self, index: TaskIndex) -> Option<Timed> {
        // Only a timed log pays for a reading of the clock. The stable log must be the same on each
        // machine.
        if !self.log.timed || self.run.task != Some(index) {
            return None;
        }
        self.now = self.machine.now();
        let ran = self.now.since(self.run.since);
        Some(Timed { ran: Some(ran), ..Timed::default() })
    }

    /// Logs a trap that is answered at once. If the answer is an interrupt, the cause is the line
    /// of the scope that has fired.
    #[cold]
    pub(crate) fn log_answer(&mut self, task: TaskIndex, ticket: Ticket) {
        debug_assert!(!self.is_parked(ticket), "an answer is written before its line");
        let (trap, site) = self.trap_of(ticket);
        let mut holders = Vec::new();
        let (op, outcome) = (self.op(&trap, &mut holders), self.outcome_of(ticket));
        let records = self.gate.records();
        let interrupt = records.waits[ticket.index].interrupt();
        let source = interrupt.and_then(|it| records.scopes.get(it.delivery().source));
        let cause = source.and_then(|scope| scope.fired.as_ref()).map(|fired| fired.line);
        let scope = records.logged_number_of(records.waits[ticket.index].scope);
        drop(records);
        // Only a reader who looks for an error needs the call site.
        let fails = cause.is_some() || matches!(outcome, Outcome::Error(_));
        let at = fails.then(|| words::site(site));
        let scope = self.unless_last(task, scope).filter(|_| cause.is_some());
        emit!(self, task, Event::Trap { op, scope, outcome, cause, at });
    }

    /// Logs a wait that has just parked. The line is `block` if the task leaves the CPU and has no
    /// other wait.
    #[cold]
    pub(crate) fn log_wait(&mut self, task: TaskIndex, ticket: Ticket, reg: Option<Reg>) {
        let (trap, site) = self.trap_of(ticket);
        debug_assert!(self.is_parked(ticket), "a wait has its line when it has parked");
        // The list goes back at the end, so that a wait for a lock allocates nothing.
        let mut holders = mem::take(&mut self.log.holders);
        let op = self.op(&trap, &mut holders);
        let records = self.gate.records();
        // If the event has come, the wait ends right after this line, and the task does not leave
        // the CPU for it.
        let has_come = match &trap {
            Trap::Wait { queue, .. } => queue.has_happened(),
            Trap::Join { task, .. } => records.tasks.get(*task).is_none(),
            _ => false,
        };
        let goes_on = has_come || self.run.goes_on || self.run.again || self.gate.has_filed();
        // `block` means that the task leaves the CPU, so a run has at most one. After it, only a
        // service writes a line of the run: `offload`.
        let leaves = !goes_on && records.is_only(task, ticket);
        let inside = records.logged_number_of(records.waits[ticket.index].scope);
        drop(records);
        let scope = self.unless_last(task, inside);
        let circle = if leaves { self.circle_at(task, ticket) } else { None };
        let circle = circle
            .map(|text| announce!(self, self.tasks.label(task), Event::Warn { text: text.into() }));
        let number = self.log.number(ticket, inside);
        let wait = LoggedWait { ticket: number, reg, scope, at: words::site(site) };
        self.run.block_logged |= leaves;
        if leaves {
            let ran = self.ran(task);
            let line = emit!(self, task, Event::Block { op, wait: Some(wait) }, ran);
            self.keep_block(task, line);
        } else {
            emit!(self, task, Event::Await { op, wait });
        }
        self.log.holders = holders;
        if let Some(line) = circle {
            self.log.dump("deadlock", line);
        }
    }

    /// Stores the line of a task's `block`, for the flight recorder.
    #[inline]
    pub(crate) fn keep_block(&mut self, task: TaskIndex, line: Seq) {
        if self.log.flight.is_some() {
            self.tasks[task].rare().lines[1] = line;
        }
    }

    /// Returns the operation of a trap for the log, with the tasks that hold the object of the
    /// wait, which are put into `holders`. Numbers the object if this kernel sees it for the first
    /// time.
    pub(crate) fn op<'t>(&mut self, trap: &'t Trap, holders: &'t mut Vec<u64>) -> Op<'t> {
        self.log.names.number_object(trap);
        let mut op = self.log.names.op_of(trap);
        if let (Op::Primitive(primitive), Trap::Wait { queue, .. }) = (&mut op, trap) {
            self.put_holders(queue, holders);
            primitive.held_by = (&holders[..]).into();
        }
        op
    }

    /// Logs that a task wakes the first `n` waits in a queue, before it wakes them. The line of a
    /// wake that reaches no task is the only trace of it.
    #[cold]
    pub(crate) fn log_notify(&mut self, queue: &Queue, n: u64) {
        let is_kept = |it: &Primitive| KEPT.contains(&it.kind);
        if queue.primitive.get().is_some_and(|it| is_kept(it)) {
            return;
        }
        self.log.names.number(queue);
        let (op, woke) = (self.log.names.op_of_queue(queue), n.min(queue.len.get()));
        let event = Event::Notify { op, woke };
        emit_for!(self, self.tasks.label_of(self.run.task), event);
    }

    /// Returns the number of a scope for the log, or `None` if it is the default: the scope that
    /// the task has opened last, of those that are open.
    pub(crate) fn unless_last(&self, task: TaskIndex, scope: u64) -> Option<u64> {
        let open = self.tasks[task].rare.as_ref().and_then(|rare| rare.scopes.last());
        (open.copied().unwrap_or(0) != scope).then_some(scope)
    }

    /// Logs the `wake` line of a wait that has ended with a reply.
    #[cold]
    pub(crate) fn log_wake(&mut self, task: TaskIndex, ticket: Ticket) {
        let state = self.tasks[task].state;
        debug_assert!(state != TaskState::Parked, "a task is ready before its line says so");
        let ((trap, _), outcome) = (self.trap_of(ticket), self.outcome_of(ticket));
        let op = match (&trap, &outcome) {
            // The handle is closed: its direction says nothing any more.
            (Trap::Io { handle, .. }, Outcome::Error(_)) => {
                Op::Closed { alias: self.log.names.alias(*handle) }
            }
            _ => self.log.names.op_of(&trap),
        };
        let number = self.note_answer(task, ticket, outcome);
        let cause = self.log.cause;
        emit!(self, task, Event::Wake { op, ticket: Some(number), cause });
    }

    /// Returns the result of a wait that has ended, in the terms of the log.
    pub(crate) fn outcome_of(&self, ticket: Ticket) -> Outcome<'static> {
        match &self.gate.records().waits[ticket.index].state {
            WaitState::Done(reply) => words::outcome(reply),
            WaitState::Filed | WaitState::Parked => unreachable!("it has ended"),
        }
    }

    /// Records the result of a wait for the next `run` line, and returns the number of the wait. A
    /// task that is running reads the result in this run, without a line.
    pub(crate) fn note_answer(
        &mut self,
        task: TaskIndex,
        ticket: Ticket,
        mut outcome: Outcome<'static>,
    ) -> u64 {
        let (number, _) = self.log.number_of(ticket);
        let task = &mut self.tasks[task];
        if number != 0 && task.state != TaskState::Running {
            words::remove_place(&mut outcome);
            let line = self.log.seq + 1;
            let rare = task.rare();
            rare.answered.push(Answered { ticket: number, outcome });
            if self.log.flight.is_some() {
                rare.answers.push(line);
            }
        }
        number
    }

    /// Returns the word for the result that a ready task will get in its next run.
    pub(crate) fn winner(&self, task: TaskIndex) -> &'static str {
        let records = self.gate.records();
        let unread = || records.waits_of(task).filter_map(|(_, wait)| wait.interrupt());
        if records.scope_around(self.tasks.key(task), ScopeKind::Task).is_some()
            && unread().any(Interrupt::is_cancelled)
        {
            return "cancel";
        }
        // One is enough: the task may have as many as it has timeouts.
        if unread().next().is_some() { "timeout" } else { "value" }
    }

    /// Logs why a timeout has ended no trap: another result came first, or there was no trap to
    /// end. (The line of a cancellation contains this itself.)
    pub(crate) fn log_pending(
        &mut self,
        source: ScopeId,
        task: TaskIndex,
        winner: Option<&'static str>,
    ) {
        if !self.log.listening {
            return;
        }
        let records = self.gate.records();
        let scope = &records.scopes[source.index];
        let number = if scope.kind.relabels() { scope.number } else { 0 };
        let interrupt = records.interrupt(source, vec![source], source, self.now);
        drop(records);
        emit!(self, task, {
            match winner {
                Some(winner) => {
                    Event::Race { winner: winner.into(), loser: "timeout".into(), scope: number }
                }
                None => {
                    let outcome = words::interrupt(&interrupt);
                    Event::Cleanup { scope: number, place: None, outcome }
                }
            }
        });
    }

    /// Logs a timer or a connection deadline that fires. `cause` is the log line that set the
    /// timer.
    pub(crate) fn log_fire(&mut self, timer: Timer, deadline: Time, cause: Seq) {
        debug_assert!(deadline <= self.now, "nothing fires early");
        let event = Event::Fire { timer, deadline, cause };
        emit_for!(self, KERNEL, event, words::late(deadline, self.now));
    }

    /// Logs the opening or the closing of a scope, with a `late` line if the scope closed with a
    /// value at or after its deadline.
    pub(crate) fn log_scope(&mut self, post: &ScopePost) {
        let ScopePost { number, kind, deadline, event, .. } = *post;
        let Some(task) = self.find(post.task) else { return };
        match event {
            ScopeEvent::Opened { scope, now, site, parent } => {
                // A deadline that was given as a point in time has no reading of the clock.
                let now = if now == Time::ZERO { self.now } else { now };
                let op = words::opening(kind, deadline, now);
                let (outcome, at) = (Outcome::Scope(number), Some(words::site(site)));
                let parent = self.unless_last(task, parent);
                self.tasks[task].rare().scopes.insert(number);
                let event = Event::Trap { op, scope: parent, outcome, cause: None, at };
                let line = emit!(self, task, event);
                // From here the log knows the scope: lines of its waits may name it.
                if let Some(found) = self.gate.records().scopes.get_mut(scope) {
                    found.line = line;
                }
            }
            ScopeEvent::Closed(left) => {
                let (op, outcome) = (words::closing(kind, number), words::left(left));
                self.tasks[task].rare().scopes.remove(&number);
                let event = Event::Trap { op, scope: None, outcome, cause: None, at: None };
                emit!(self, task, event);
                // A late value is still a value. The line says that the deadline had passed, and
                // that nothing was waiting then.
                if let Left::Value(at) = left
                    && deadline <= at
                {
                    let over = at.since(deadline);
                    emit!(self, task, Event::Late { scope: number, deadline, over });
                }
            }
        }
    }

    pub(crate) fn log_note(&mut self, note: &Note) {
        let acting = self.run.task;
        // Log a warning or a hit limit even if only these are wanted.
        announce!(self, self.tasks.label_of(acting), {
            match *note {
                Note::Warning(ref text) => Event::Warn { text: (&**text).into() },
                Note::Cap(ref text) => Event::Cap { text: (&**text).into() },
                Note::Deadline(slot, number, what) => return self.log_deadline(slot, number, what),
                Note::Moved(handle, direction, bytes) => Event::Io {
                    alias: self.log.names.alias(handle),
                    direction,
                    bytes: bytes as u64,
                },
                Note::Accepted(handle, connection, ref peer) => {
                    let peer = peer.as_ref().filter(|_| self.log.timed);
                    let peer = peer.map(|peer| peer.to_string().into());
                    let (listener, connection) =
                        (self.log.names.alias(handle), self.log.names.alias(connection));
                    Event::Accept { listener, connection, peer }
                }
                Note::Joined(task) => Event::Join { task: task.0 },
                Note::Permit(ref queue, event) => return self.log_permit(queue, event),
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
                Note::Said(ref text) => Event::Note { text: (&**text).into() },
                Note::Span(true, ref name) => Event::Enter { name: (&**name).into() },
                Note::Span(false, ref name) => Event::Leave { name: (&**name).into() },
            }
        });
    }

    /// Logs that a permit was taken or given back. For the flight recorder, a task stores the lines
    /// of the permits that it holds.
    fn log_permit(&mut self, queue: &Rc<Queue>, event: PermitEvent) {
        let Some(primitive) = queue.primitive.get() else { return };
        let (acting, of) = (self.run.task, Rc::as_ptr(queue));
        let (kind, name) = (primitive.kind.into(), (&*primitive.name).into());
        let who = self.tasks.label_of(acting);
        match event {
            PermitEvent::Taken(site) => {
                let at = Some(words::site(site));
                let line = emit_for!(self, who, Event::Take { kind, name, at });
                if let Some(task) = acting.filter(|_| self.log.flight.is_some()) {
                    self.tasks[task].rare().held.push((of, line));
                }
            }
            PermitEvent::Given(holder) => {
                // In the log a task that has ended holds nothing. A line without `from` would take
                // a permit from the acting task, which may have its own.
                let Some(holder) = self.find(holder) else { return };
                let from = (acting != Some(holder)).then(|| self.tasks.id(holder));
                emit_for!(self, who, Event::Give { kind, name, from });
                if self.log.flight.is_some() {
                    let held = &mut self.tasks[holder].rare().held;
                    // Remove the oldest. If one of several permits is given back, a reader of the
                    // log still shows the last `take`, so the head of a dump needs that line.
                    let place = held.iter().position(|(queue, _)| *queue == of);
                    place.map(|place| held.remove(place));
                }
            }
        }
    }

    pub(crate) fn log_deadline(&mut self, slot: u32, number: u32, what: DeadlineEvent) {
        let timer = Timer::Deadline(u64::from(number));
        emit_for!(self, self.tasks.label_of(self.run.task), {
            match what {
                DeadlineEvent::Made => {
                    let outcome = Outcome::Deadline(u64::from(number));
                    let op = Op::ConnectionDeadline;
                    Event::Trap { op, scope: None, outcome, cause: None, at: None }
                }
                DeadlineEvent::Armed(until, phase, site) => {
                    Event::Arm { timer, until, phase: phase.into(), at: Some(words::site(site)) }
                }
                DeadlineEvent::Disarmed => Event::Disarm { timer },
            }
        });
        if self.log.listening && matches!(what, DeadlineEvent::Armed(..)) {
            self.log.arm(slot, number);
        }
    }
}

/// Logs an event of a task, if there is an observer. Returns the number of the log line, or 0.
macro_rules! emit {
    ($sched:expr, $task:expr, $event:expr) => {
        $crate::log::lines::emit!($sched, $task, $event, None)
    };
    ($sched:expr, $task:expr, $event:expr, $timed:expr) => {
        $crate::log::lines::emit_for!($sched, $sched.tasks.label($task), $event, $timed)
    };
}
pub(crate) use emit;

/// Logs an event like `emit`, for a number and a name, such as [`KERNEL`] or [`WAKEUP`].
macro_rules! emit_for {
    ($sched:expr, $who:expr, $event:expr) => {
        $crate::log::lines::emit_for!($sched, $who, $event, None)
    };
    ($sched:expr, $who:expr, $event:expr, $timed:expr) => {
        if $sched.log.listening {
            let line = $crate::log::apart(|| {
                let (task, name) = $who;
                $crate::log::lines::put_line!($sched, task, name, $event, $timed)
            });
            if $sched.log.shows_state {
                $sched.show_state();
            }
            line
        } else {
            0
        }
    };
}
pub(crate) use emit_for;

/// Logs an event that may be wanted even if no observer wants every event, such as a warning.
macro_rules! announce {
    ($sched:expr, $who:expr, $event:expr) => {{
        let (task, name) = $who;
        let line = $crate::log::lines::put_line!($sched, task, name, $event, None);
        if $sched.log.shows_state {
            $sched.show_state();
        }
        line
    }};
}
pub(crate) use announce;

/// Writes a line. The line is made in its place: a move of its event would be a copy.
macro_rules! put_line {
    ($sched:expr, $task:expr, $name:expr, $event:expr, $timed:expr) => {{
        let mut line = $crate::trace::Line {
            event: $event,
            timed: $timed,
            at: $sched.now,
            turn: $sched.turn,
            seq: 0,
            task: $task,
            name: $name.into(),
        };
        $sched.log.write(&mut line)
    }};
}
pub(crate) use put_line;
