//! What lives in a trace, and the steps that each life may take.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use traps::protocol::Direction;

use super::Report;
use crate::trace::{Alias, Event, Line, Need, Op, Outcome, Phase, Timer, Why};

/// Whose life it is: the rule about its kind, and its name in the log.
type Life = (&'static str, Name);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Task(u64),
    /// A ticket and its timer have the same name, and so have a scope and its.
    Timer(Timer),
    Alias(Alias),
    Job(u64),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Task(number) => write!(f, "task {number}"),
            Name::Timer(timer) => timer.fmt(f),
            Name::Alias(alias) => alias.fmt(f),
            Name::Job(number) => write!(f, "o{number}"),
        }
    }
}

/// How many that have ended are remembered, to find one that is used again.
const ENDED: usize = 1024;

/// Where a life stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Open,
    /// A scope that is open and has a deadline of its own.
    Limited,
    /// A timer that something other than an `arm` line has set.
    Set,
    /// A timer that an `arm` line has armed.
    Armed,
    /// A job that waits for a token.
    Queued,
    /// A job that has a token.
    Running,
    /// A job that has a token, and whose caller was answered first.
    Abandoned,
    /// A job whose value was handed to its caller, who may yet leave it unread.
    Done,
    /// A registration after the poller refused something: it may be open or not.
    Unsure,
    Ended,
    /// A ticket that has ended, and that a run has answered; a registration of a handle that was
    /// closed.
    Answered,
}
use State::*;

fn task(line: &Line<'_>) -> Life {
    ("life", Name::Task(line.task))
}

fn ticket(number: u64) -> Life {
    ("ticket", Name::Timer(Timer::Sleep(number)))
}

fn scope(number: u64) -> Life {
    ("scope", Name::Timer(Timer::Scope(number)))
}

/// A step of a life: from one of these states to that.
type Step = (Life, &'static [State], State);

/// The step that a line takes in the life of a task, a ticket or a scope.
fn step(line: &Line<'_>, tokens: u32) -> Option<Step> {
    Some(match &line.event {
        Event::Spawn { .. } => (task(line), &[New], Open),
        Event::Exit { .. } => (task(line), &[Open], Ended),
        Event::Block { ticket: Some(number), .. } => (ticket(*number), &[New], Open),
        Event::Wake { ticket: Some(number), .. }
        | Event::Deliver { ticket: number, .. }
        | Event::Withdraw { ticket: number } => (ticket(*number), &[Open], Ended),
        Event::Trap {
            op:
                Op::UnsetTimeout { scope: number }
                | Op::Unguard { scope: number }
                | Op::Unbranch { scope: number }
                | Op::Unshield { scope: number },
            ..
        } => (scope(*number), &[Open, Limited], Ended),
        Event::Trap { op, outcome: Outcome::Scope(number), .. } => {
            let to = match op {
                Op::SetTimeout { until: Some(_), .. } => Limited,
                Op::SetTimeout { .. } | Op::Guard { .. } | Op::Branch | Op::Shield => Open,
                _ => return None,
            };
            (scope(*number), &[New], to)
        }
        event => return machine_step(event, tokens),
    })
}

/// As above, for a registration, a timer or a job.
fn machine_step(event: &Event<'_>, tokens: u32) -> Option<Step> {
    let job = |number| ("job", Name::Job(number));
    let life = |rule, timer: &Timer| (rule, Name::Timer(*timer));
    let watched = |alias: &Alias| ("register", Name::Alias(*alias));
    Some(match event {
        Event::Register { alias, why: Need::First } => (watched(alias), &[New, Unsure], Open),
        Event::Register { alias, .. } => (watched(alias), &[Ended, Unsure], Open),
        // A handle that was closed is never registered again.
        Event::Unregister { alias, why: Why::Close } => (watched(alias), &[Open, Unsure], Answered),
        Event::Unregister { alias, .. } => (watched(alias), &[Open, Unsure], Ended),
        Event::Refuse { alias, .. } => (watched(alias), &[New, Open, Ended, Unsure], Unsure),
        // Only a connection deadline may be armed again while it is armed.
        Event::Arm { timer: timer @ Timer::Deadline(_), .. } => {
            (life("timer", timer), &[New, Set, Ended, Armed], Armed)
        }
        Event::Arm { timer, .. } => (life("timer", timer), &[New, Set, Ended], Armed),
        Event::Disarm { timer } | Event::Fire { timer, .. } => {
            (life("timer", timer), &[Set, Armed], Ended)
        }
        Event::Offload { job: number, running, .. } => {
            (job(*number), &[New], if *running == tokens + 1 { Running } else { Queued })
        }
        Event::OffloadStarts { job: number, .. } => (job(*number), &[Queued], Running),
        Event::Done { job: number } => (job(*number), &[Running], Done),
        Event::Abandon { job: number } => (job(*number), &[Running], Abandoned),
        // One that comes back in the turn of a deadline that wins has a caller still.
        Event::Orphan { job: number } => (job(*number), &[Running, Abandoned, Done], Ended),
        Event::Drop { what } => {
            let name = what.strip_suffix("_before_it_ran").unwrap_or(what);
            let number = name.strip_prefix('o')?.parse().ok()?;
            (job(number), &[Queued, Running, Abandoned], Ended)
        }
        _ => return None,
    })
}

#[derive(Default)]
pub(super) struct Lives {
    states: BTreeMap<Life, State>,
    /// The descriptor and the direction that a ticket waits for, or a task that has no ticket.
    waiters: BTreeMap<Life, (Alias, bool)>,
    /// The same, by descriptor and direction.
    sides: BTreeSet<(Alias, bool)>,
    /// What has ended, oldest first.
    ended: VecDeque<Life>,
    /// How many jobs wait for a token.
    queued: u32,
    /// How many jobs have a token.
    running: u32,
}

impl Lives {
    pub(super) fn line(&mut self, line: &Line<'_>, report: &mut Report<'_>) {
        if let Some((life, from, to)) = step(line, self.running) {
            let again = matches!(line.event, Event::Exit { .. }) && self.state(&life) == Ended;
            self.must_be(report, if again { "exit" } else { life.0 }, &life, from);
            self.go(life, to);
        }
        match &line.event {
            Event::Run { answered, .. } => {
                self.must_be(report, "life", &task(line), &[Open]);
                self.leave(&task(line));
                for each in answered.iter() {
                    self.must_be(report, "answer", &ticket(each.ticket), &[Ended]);
                    self.go(ticket(each.ticket), Answered);
                }
            }
            Event::Block { op, ticket: number, .. } => {
                self.must_be(report, "life", &task(line), &[Open]);
                self.block(report, op, number.map_or_else(|| task(line), ticket));
            }
            Event::Phase(Phase::Drain { .. }) => self.set(Name::Timer(Timer::Drain)),
            Event::Phase(Phase::Cancel { .. }) => self.set(Name::Timer(Timer::Grace)),
            Event::Offload { running, queued, .. }
            | Event::OffloadStarts { running, queued, .. } => {
                let Lives { running: ours, queued: also_ours, .. } = self;
                if (*running, *queued) != (*ours, *also_ours) {
                    report("job", format!("running={ours} queued={also_ours} by the lines before"));
                }
            }
            Event::Halt { tasks, tickets, timers, threads, .. } => {
                self.halt(report, *tasks, *tickets, *timers);
                let left = self.queued + self.running;
                if u64::from(left) != *threads {
                    report("job", format!("{left} have not ended, threads={threads}"));
                }
            }
            _ => {}
        }
    }

    fn block(&mut self, report: &mut Report<'_>, op: &Op<'_>, waiter: Life) {
        match op {
            Op::Sleep { .. } if waiter.0 == "ticket" => self.set(waiter.1),
            Op::Io { alias, direction } => {
                let side = (*alias, *direction == Direction::Read);
                if !self.sides.insert(side) {
                    report("one-waiter", format!("{op} has one already"));
                }
                self.waiters.insert(waiter, side);
            }
            _ => {}
        }
    }

    /// It waits for no descriptor any more.
    fn leave(&mut self, waiter: &Life) {
        if let Some(side) = self.waiters.remove(waiter) {
            self.sides.remove(&side);
        }
    }

    fn state(&self, life: &Life) -> State {
        self.states.get(life).copied().unwrap_or(New)
    }

    fn must_be(&self, report: &mut Report<'_>, rule: &'static str, life: &Life, states: &[State]) {
        match self.state(life) {
            state if states.contains(&state) => {}
            New => report(rule, format!("{} was not opened", life.1)),
            state => report(rule, format!("{} is {state:?}", life.1)),
        }
    }

    /// A life goes on to this state, and what hangs on it follows: the counts of jobs, and the
    /// waiter and the timer of that name.
    fn go(&mut self, life: Life, to: State) {
        let was = self.states.insert(life, to);
        self.queued += u32::from(to == Queued);
        self.queued -= u32::from(was == Some(Queued));
        self.running += u32::from(matches!(to, Running | Abandoned));
        self.running -= u32::from(matches!(was, Some(Running | Abandoned)));
        match (life.0, to) {
            ("scope", Limited) => self.set(life.1),
            ("scope" | "ticket", Ended) => {
                self.leave(&life);
                // What an `arm` line armed must end by a line of its own, what is set need not.
                if let Some(state @ Set) = self.states.get_mut(&("timer", life.1)) {
                    *state = Ended;
                }
            }
            _ => {}
        }
        // A ticket lives on until a run has answered it.
        if to == Answered || to == Ended && matches!(life.0, "life" | "scope" | "job") {
            self.ended.push_back(life);
        }
        if self.ended.len() > ENDED
            && let Some(old) = self.ended.pop_front()
        {
            self.states.remove(&old);
            self.states.remove(&("timer", old.1));
        }
    }

    /// Something other than an `arm` line sets this timer.
    fn set(&mut self, timer: Name) {
        let state = self.states.entry(("timer", timer)).or_insert(Set);
        *state = if *state == Armed { Armed } else { Set };
    }

    /// What a kernel that ends does not count must have ended.
    fn halt(&self, report: &mut Report<'_>, tasks: u64, tickets: u64, timers: u64) {
        for ((rule, name), state) in &self.states {
            let counted = match (*rule, state) {
                ("ticket", Open) => tickets,
                // The timer of a sleep ends with its ticket.
                ("timer", Armed) if !matches!(name, Name::Timer(Timer::Sleep(_))) => timers,
                ("scope", Limited) => tasks,
                _ => continue,
            };
            if counted == 0 {
                report(rule, format!("{name} is {state:?}"));
            }
        }
    }
}
