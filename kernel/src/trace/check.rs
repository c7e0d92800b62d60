//! The oracle: what must be true of any trace, whatever the program.
//!
//! One pass, one small state machine a noun. It takes a whole trace, from the first event, and
//! knows nothing of the kernel's code, only of what `grammar.md` promises.

use std::collections::BTreeMap;

use traps::time::Time;

use super::violation::Violation;
use super::words::Word;
use super::{Alias, Answered, Event, Line, Op, Outcome, Seq, Timer, WakeOp};

mod end;
mod job;

use job::Job;

/// Checks a whole trace.
///
/// # Errors
///
/// Every violation, in the order of the lines.
pub fn check(lines: &[Line<'_>]) -> Result<(), Vec<Violation>> {
    let mut oracle = Oracle::default();
    lines.iter().for_each(|line| oracle.line(line));
    if oracle.violations.is_empty() { Ok(()) } else { Err(oracle.violations) }
}

/// One direction of a descriptor: the alias and the direction's word.
type Side = (Alias, &'static str);

/// Who waits at a side of a descriptor: a ticket, or a task that waits without one.
#[derive(Clone, Copy, PartialEq)]
enum Waiter {
    Ticket(u64),
    Task(u64),
}

#[derive(Clone, Copy, PartialEq)]
enum Ticket {
    Open,
    Ended,
    Answered,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Life {
    #[default]
    Unknown,
    Alive,
    Exited,
}

/// When a task was made ready.
#[derive(Clone, Copy)]
struct Ready {
    seq: Seq,
    turn: u64,
}

#[derive(Default)]
struct Task {
    life: Life,
    /// The first event since its last run that made it ready.
    ready: Option<Ready>,
    /// It has left the CPU since it ran, to be ready at once.
    has_left: bool,
}

/// A registration, as far as the trace tells.
#[derive(Clone, Copy, PartialEq)]
enum Registered {
    Yes,
    No,
    /// The poller refused something: either may follow.
    Unsure,
}

#[derive(Clone, Copy, PartialEq)]
enum Alarm {
    /// A `block sleep` or a `trap set_timeout` set it.
    Set,
    /// An `arm` line armed it.
    Armed,
    Ended,
}

#[derive(Clone, Copy, PartialEq)]
enum Scope {
    Open,
    /// Open, and with a deadline of its own.
    Limited,
    Closed,
}

/// The ordinary runs of one turn.
#[derive(Clone, Copy)]
struct Turn {
    turn: u64,
    first_run: Seq,
    /// When the task that ran last had been made ready.
    last_ready: Seq,
    /// The task that ran last.
    task: u64,
}

#[derive(Default)]
struct Oracle {
    violations: Vec<Violation>,
    first: Option<Seq>,
    /// Number, time and turn of the line before.
    last: Option<(Seq, Time, u64)>,
    tickets: BTreeMap<u64, Ticket>,
    /// The kernel's own task may be here under its number, like any other.
    tasks: BTreeMap<u64, Task>,
    waiters: BTreeMap<Side, Waiter>,
    /// Where the waiters stand, to find them when they leave.
    sides: BTreeMap<u64, Side>,
    registered: BTreeMap<Alias, Registered>,
    alarms: BTreeMap<Timer, Alarm>,
    scopes: BTreeMap<u64, Scope>,
    jobs: BTreeMap<u64, Job>,
    /// Those that are queued, have a token, and are over.
    job_counts: [usize; 3],
    turn: Option<Turn>,
}

impl Oracle {
    fn line(&mut self, line: &Line<'_>) {
        self.order(line);
        match &line.event {
            Event::Spawn { cause, .. } => {
                cause.iter().for_each(|cause| self.cause(line, *cause));
                self.spawn(line);
            }
            Event::Run { cause, answered } => {
                self.cause(line, *cause);
                self.run(line, answered);
            }
            Event::Trap { op, outcome, cause, .. } => {
                cause.iter().for_each(|cause| self.cause(line, *cause));
                self.trap(line, op, outcome);
            }
            Event::Block { op, ticket, .. } => self.block(line, op, *ticket),
            Event::Wake { ticket, cause, .. } => {
                self.cause(line, *cause);
                ticket.iter().for_each(|&ticket| self.end(line, ticket));
                self.make_ready(line);
            }
            Event::Deliver { ticket, cause, .. } => {
                self.cause(line, *cause);
                self.end(line, *ticket);
                self.make_ready(line);
            }
            Event::Withdraw { ticket } => self.end(line, *ticket),
            Event::Cancel { cause, .. } => self.cause(line, *cause),
            Event::Exit { cause, .. } => {
                self.cause(line, *cause);
                self.exit(line);
            }
            Event::Register { alias } => self.register(line, *alias, Registered::Yes),
            Event::Unregister { alias, .. } => self.register(line, *alias, Registered::No),
            Event::Refuse { alias, .. } => self.register(line, *alias, Registered::Unsure),
            Event::Arm { timer, .. } => self.arm(line, *timer),
            Event::Disarm { timer } => self.ring(line, *timer, "disarmed"),
            Event::Fire { timer, cause, .. } => {
                self.cause(line, *cause);
                self.ring(line, *timer, "fired");
            }
            Event::Offload { .. }
            | Event::OffloadStarts { .. }
            | Event::Done { .. }
            | Event::Abandon { .. }
            | Event::Orphan { .. }
            | Event::Drop { .. } => self.job(line),
            Event::Phase(phase) => self.phase(line, phase),
            Event::Halt { tasks, tickets, timers, threads, .. } => {
                self.halt(line, *tasks, *tickets, *timers);
                self.halt_jobs(line, *threads);
            }
            _ => {}
        }
    }

    fn report(&mut self, line: &Line<'_>, rule: &'static str, what: String) {
        self.violations.push(Violation { seq: line.seq, rule, what });
    }

    fn order(&mut self, line: &Line<'_>) {
        self.first.get_or_insert(line.seq);
        if let Some((seq, at, turn)) = self.last.replace((line.seq, line.at, line.turn)) {
            if seq.checked_add(1) != Some(line.seq) {
                self.report(line, "seq", format!("follows #{seq:04}"));
            }
            if line.at < at {
                self.report(line, "time", format!("{} after {at}", line.at));
            }
            if line.turn < turn {
                self.report(line, "turn", format!("turn {} after turn {turn}", line.turn));
            }
        }
    }

    fn cause(&mut self, line: &Line<'_>, cause: Seq) {
        if cause >= line.seq || self.first.is_some_and(|first| cause < first) {
            self.report(line, "cause", format!("#{cause:04} is no earlier line of this trace"));
        }
    }

    fn spawn(&mut self, line: &Line<'_>) {
        let task = self.tasks.entry(line.task).or_default();
        let was = task.life;
        task.life = Life::Alive;
        if was != Life::Unknown {
            self.report(line, "life", format!("task {} is spawned again", line.task));
        }
        self.make_ready(line);
    }

    fn make_ready(&mut self, line: &Line<'_>) {
        let ready = Ready { seq: line.seq, turn: line.turn };
        let runs = self.turn.is_some_and(|turn| (turn.turn, turn.task) == (line.turn, line.task));
        let task = self.tasks.entry(line.task).or_default();
        if runs && !task.has_left {
            // It is polled on for all but the last of these, which is of its leaving the CPU.
            task.ready = Some(ready);
            let Event::Wake { op, .. } = &line.event else { return };
            // None of these ends a wait of a task that goes on.
            use WakeOp::{Scope, Sleep, Waker, Yield};
            task.has_left = matches!(op, Waker | Yield | Sleep | Scope { .. });
        } else {
            task.ready.get_or_insert(ready);
        }
    }

    fn alive(&mut self, line: &Line<'_>) {
        match self.tasks.entry(line.task).or_default().life {
            Life::Alive => {}
            Life::Unknown => {
                self.report(line, "life", format!("task {} was not spawned", line.task))
            }
            Life::Exited => self.report(line, "life", format!("task {} has ended", line.task)),
        }
    }

    fn run(&mut self, line: &Line<'_>, answered: &[Answered<'_>]) {
        self.alive(line);
        self.waiters.retain(|_, waiter| *waiter != Waiter::Task(line.task));
        for Answered { ticket, .. } in answered {
            match self.tickets.insert(*ticket, Ticket::Answered) {
                Some(Ticket::Ended) => {}
                Some(Ticket::Answered) => {
                    self.report(line, "answer", format!("k={ticket} was answered before"));
                }
                Some(Ticket::Open) | None => {
                    self.report(line, "answer", format!("k={ticket} has not ended"));
                }
            }
        }
        let task = self.tasks.entry(line.task).or_default();
        task.has_left = false;
        let ready = task.ready.take();
        // The kernel's own task runs before the ready queue, as soon as it is needed.
        if line.task == 1 && line.name == "wakeup" {
            return;
        }
        match ready {
            Some(ready) => self.queue(line, ready),
            None => self.report(line, "ready", format!("nothing made task {} ready", line.task)),
        }
    }

    /// First come, first served, and who comes after the first run waits for the next turn.
    fn queue(&mut self, line: &Line<'_>, ready: Ready) {
        let started = self.turn.filter(|turn| turn.turn == line.turn);
        let (turn, seq) = (line.turn, line.seq);
        let task = line.task;
        let now = started.unwrap_or(Turn { turn, first_run: seq, last_ready: 0, task });
        if ready.turn == turn && ready.seq > now.first_run {
            let what = format!("ready at #{:04}, after the first run of the turn", ready.seq);
            self.report(line, "next-turn", what);
        } else if ready.seq < now.last_ready {
            let what = format!("ready at #{:04}, runs after #{:04}", ready.seq, now.last_ready);
            self.report(line, "fifo", what);
        }
        self.turn = Some(Turn { last_ready: now.last_ready.max(ready.seq), task, ..now });
    }

    fn exit(&mut self, line: &Line<'_>) {
        let task = self.tasks.entry(line.task).or_default();
        match std::mem::replace(&mut task.life, Life::Exited) {
            Life::Alive => {}
            Life::Unknown => {
                self.report(line, "life", format!("task {} was not spawned", line.task))
            }
            Life::Exited => self.report(line, "exit", format!("task {} exits again", line.task)),
        }
    }

    fn block(&mut self, line: &Line<'_>, op: &Op<'_>, ticket: Option<u64>) {
        self.alive(line);
        if let Some(ticket) = ticket
            && self.tickets.insert(ticket, Ticket::Open).is_some()
        {
            self.report(line, "ticket", format!("k={ticket} was opened before"));
        }
        // What made it ready while it ran was served by the same run.
        self.tasks.entry(line.task).or_default().ready = None;
        if let (Op::Sleep { .. }, Some(ticket)) = (op, ticket) {
            self.set(Timer::Sleep(ticket));
        }
        if let Op::Io { alias, direction } = op {
            let side = (*alias, direction.word());
            let waiter = ticket.map_or(Waiter::Task(line.task), Waiter::Ticket);
            if self.waiters.insert(side, waiter).is_some() {
                let what = format!("{alias} {} has one already", side.1);
                self.report(line, "one-waiter", what);
            }
            self.sides.extend(ticket.map(|ticket| (ticket, side)));
        }
    }

    /// A ticket ends: by a wake, a delivery or a withdrawal.
    fn end(&mut self, line: &Line<'_>, ticket: u64) {
        match self.tickets.insert(ticket, Ticket::Ended) {
            Some(Ticket::Open) => {}
            Some(Ticket::Ended | Ticket::Answered) => {
                self.report(line, "ticket", format!("k={ticket} ended before"));
            }
            None => self.report(line, "ticket", format!("k={ticket} was not opened")),
        }
        if let Some(side) = self.sides.remove(&ticket)
            && self.waiters.get(&side) == Some(&Waiter::Ticket(ticket))
        {
            self.waiters.remove(&side);
        }
        // A sleep that was interrupted does not fire; whether a line says so is left open.
        if let Some(alarm @ Alarm::Set) = self.alarms.get_mut(&Timer::Sleep(ticket)) {
            *alarm = Alarm::Ended;
        }
    }

    fn register(&mut self, line: &Line<'_>, alias: Alias, now: Registered) {
        let was = self.registered.insert(alias, now).unwrap_or(Registered::No);
        if was == now && now != Registered::Unsure {
            let what = if now == Registered::Yes { "is registered" } else { "is not registered" };
            self.report(line, "register", format!("{alias} {what}"));
        }
    }

    /// Something other than an `arm` line sets this timer.
    fn set(&mut self, timer: Timer) {
        let alarm = self.alarms.entry(timer).or_insert(Alarm::Ended);
        if *alarm == Alarm::Ended {
            *alarm = Alarm::Set;
        }
    }

    fn arm(&mut self, line: &Line<'_>, timer: Timer) {
        let was = self.alarms.insert(timer, Alarm::Armed);
        let is_reusable = matches!(timer, Timer::Deadline(_));
        if !is_reusable && was == Some(Alarm::Armed) {
            self.report(line, "timer", format!("{timer} is armed"));
        }
    }

    /// A timer ends: it fires, or is disarmed.
    fn ring(&mut self, line: &Line<'_>, timer: Timer, how: &str) {
        let was = self.alarms.insert(timer, Alarm::Ended);
        if !matches!(was, Some(Alarm::Set | Alarm::Armed)) {
            self.report(line, "timer", format!("{timer} {how}, but is not armed"));
        }
    }

    fn trap(&mut self, line: &Line<'_>, op: &Op<'_>, outcome: &Outcome<'_>) {
        if let (
            Op::SetTimeout { .. } | Op::Guard { .. } | Op::Branch | Op::Shield { .. },
            Outcome::Scope(number),
        ) = (op, outcome)
        {
            let is_limited = matches!(op, Op::SetTimeout { until: Some(_), .. });
            let scope = if is_limited { Scope::Limited } else { Scope::Open };
            if self.scopes.insert(*number, scope).is_some() {
                self.report(line, "scope", format!("s{number} was used before"));
            }
            if is_limited {
                self.set(Timer::Scope(*number));
            }
        }
        if let Op::UnsetTimeout { scope } = op {
            if matches!(self.scopes.insert(*scope, Scope::Closed), None | Some(Scope::Closed)) {
                self.report(line, "scope", format!("s{scope} is not open"));
            }
            if let Some(alarm @ Alarm::Set) = self.alarms.get_mut(&Timer::Scope(*scope)) {
                *alarm = Alarm::Ended;
            }
        }
    }
}
