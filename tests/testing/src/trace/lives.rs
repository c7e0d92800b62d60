//! The things that live in a trace, and the allowed steps of each life.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use super::Line;
use super::check::Report;

/// The owner of a life: its kind, and its name in the log.
type Life = (Kind, Name);

/// The kinds of things that have a life, in the order of their rules.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Job,
    Task,
    Register,
    Scope,
    Ticket,
    Timer,
}

impl Kind {
    /// Returns the rule about the steps of this kind.
    fn rule(self) -> &'static str {
        match self {
            Kind::Job => "job",
            Kind::Task => "life",
            Kind::Register => "register",
            Kind::Scope => "scope",
            Kind::Ticket => "ticket",
            Kind::Timer => "timer",
        }
    }
}

/// A name: a letter for the kind, and a number. A ticket and its timer have the same name, and so
/// do a scope and its timer. A task is `t`; anything without such a name is its first letter and 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name(char, u64);

const DRAIN: Name = Name('D', 0);
const GRACE: Name = Name('G', 0);

impl Name {
    /// Parses a word such as `k=3`, `s1`, `c1` or `drain`.
    fn of(word: &str) -> Name {
        let word = word.strip_prefix("k=").map_or((None, word), |number| (Some('k'), number));
        match word {
            (Some(letter), number) => Name(letter, number.parse().unwrap_or(0)),
            (None, "drain") => DRAIN,
            (None, "grace") => GRACE,
            (None, word) => {
                let mut rest = word.chars();
                let letter = rest.next().unwrap_or('?');
                Name(letter, rest.as_str().parse().unwrap_or(0))
            }
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Name('t', number) => write!(f, "task {number}"),
            Name('k', number) => write!(f, "k={number}"),
            DRAIN => f.write_str("drain"),
            GRACE => f.write_str("grace"),
            Name(letter, number) => write!(f, "{letter}{number}"),
        }
    }
}

/// How many ended lives are remembered, to detect one that is used again.
const ENDED: usize = 1024;

/// The state of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Open,
    /// An open scope with a deadline.
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
    /// A job whose value was handed to its caller, which may still leave it unread.
    Done,
    /// A registration after an error of the poller, so it may be open or not.
    Unsure,
    Ended,
    /// A ticket that has ended, and that a run has answered; a registration of a handle that was
    /// closed.
    Answered,
    /// A handle after its descriptor was closed too.
    Closed,
}
use State::*;

fn task(line: &Line<'_>) -> Life {
    (Kind::Task, Name('t', line.task))
}

fn ticket(number: u64) -> Life {
    (Kind::Ticket, Name('k', number))
}

/// A step of a life, from one of these states to that state.
type Step = (Life, &'static [State], State);

/// Returns the step that a line makes in the life of a task, a ticket or a scope.
fn step(line: &Line<'_>) -> Option<Step> {
    Some(match line.verb {
        "spawn" => (task(line), &[New], Open),
        "exit" => (task(line), &[Open], Ended),
        "block" | "await" => (ticket(line.ticket?), &[New], Open),
        "wake" => (ticket(line.ticket?), &[Open], Ended),
        "deliver" | "withdraw" => (ticket(line.ticket.unwrap_or(0)), &[Open], Ended),
        "trap" => return scope_step(line),
        _ => return machine_step(line),
    })
}

/// Returns the step of a scope.
fn scope_step(line: &Line<'_>) -> Option<Step> {
    let scope = |word| (Kind::Scope, Name::of(word));
    match line.word(0) {
        "unset_timeout" | "unguard" | "unbranch" | "unshield" => {
            Some((scope(line.word(1)), &[Open, Limited], Ended))
        }
        word @ ("set_timeout" | "guard" | "branch" | "shield") => {
            let is_limited = word == "set_timeout" && line.key("until").is_some();
            let number = line.outcome().filter(|outcome| outcome.starts_with('s'))?;
            Some((scope(number), &[New], if is_limited { Limited } else { Open }))
        }
        _ => None,
    }
}

/// Returns the step of a registration, a timer or a job.
fn machine_step(line: &Line<'_>) -> Option<Step> {
    let life = |kind| (kind, Name::of(line.word(0)));
    let is = |key, value| line.key(key) == Some(value);
    Some(match line.verb {
        "register" if is("why", "first") => (life(Kind::Register), &[New, Unsure], Open),
        "register" => (life(Kind::Register), &[Ended, Unsure], Open),
        // A handle that was closed is never registered again.
        "unregister" if is("why", "close") => (life(Kind::Register), &[Open, Unsure], Answered),
        "unregister" => (life(Kind::Register), &[Open, Unsure], Ended),
        // A handle can be closed before its descriptor, which ends its registration.
        "close" => (life(Kind::Register), &[New, Ended, Unsure, Answered], Closed),
        "refuse" => (life(Kind::Register), &[New, Open, Ended, Unsure], Unsure),
        // Only a connection deadline may be armed again while it is armed.
        "arm" if life(Kind::Timer).1.0 == 'd' => {
            (life(Kind::Timer), &[New, Set, Ended, Armed], Armed)
        }
        "arm" => (life(Kind::Timer), &[New, Set, Ended], Armed),
        // The line may also withdraw the interrupt of a deadline that has fired.
        "disarm" => (life(Kind::Timer), &[Set, Armed, Ended], Ended),
        "fire" => (life(Kind::Timer), &[Set, Armed], Ended),
        "offload" if line.word(1) == "starts" => (life(Kind::Job), &[Queued], Running),
        "offload" => {
            let runs = line.key("queued") == Some("0");
            (life(Kind::Job), &[New], if runs { Running } else { Queued })
        }
        "done" => (life(Kind::Job), &[Running], Done),
        "abandon" => (life(Kind::Job), &[Running], Abandoned),
        // A job that comes back in the turn of a deadline that wins still has a caller.
        "orphan" => (life(Kind::Job), &[Running, Abandoned, Done], Ended),
        "drop" => {
            let name = Name::of(line.word(0));
            let job = Some((Kind::Job, name)).filter(|_| name.0 == 'o' && name.1 > 0)?;
            (job, &[Queued, Running, Abandoned], Ended)
        }
        _ => return None,
    })
}

#[derive(Default)]
pub(super) struct Lives {
    states: BTreeMap<Life, State>,
    /// The descriptor and the direction that a ticket waits for, or a task that has no ticket.
    waiters: BTreeMap<Life, (Name, bool)>,
    /// The waiting ticket or task, by descriptor and direction.
    sides: BTreeSet<(Name, bool)>,
    /// The ended lives, oldest first.
    ended: VecDeque<Life>,
    /// How many jobs wait for a token.
    queued: u64,
    /// How many jobs have a token.
    running: u64,
}

impl Lives {
    pub(super) fn line(&mut self, line: &Line<'_>, report: &mut Report<'_>) {
        if let Some((life, from, to)) = step(line) {
            let again = line.verb == "exit" && self.state(&life) == Ended;
            self.must_be(report, if again { "exit" } else { life.0.rule() }, &life, from);
            self.go(life, to);
        }
        match line.verb {
            "run" => {
                self.must_be(report, "life", &task(line), &[Open]);
                self.leave(&task(line));
                let numbers = line.words().filter_map(|word| word.strip_prefix("k=")?.parse().ok());
                for answered in numbers.map(ticket) {
                    self.must_be(report, "answer", &answered, &[Ended]);
                    self.go(answered, Answered);
                }
            }
            "block" | "await" => {
                self.must_be(report, "life", &task(line), &[Open]);
                self.block(report, line);
            }
            "phase" if line.word(0) == "drain" => self.set(DRAIN),
            "phase" if line.word(0) == "cancel" => self.set(GRACE),
            "offload" => {
                let Lives { running, queued, .. } = *self;
                let shown = (line.number("running"), line.number("queued"));
                if shown != (Some(running), Some(queued)) {
                    report("job", format!("running={running} queued={queued} by the lines before"));
                }
            }
            "halt" => self.halt(report, line),
            _ => {}
        }
    }

    fn block(&mut self, report: &mut Report<'_>, line: &Line<'_>) {
        let waiter = line.ticket.map_or_else(|| task(line), ticket);
        match line.word(0) {
            "sleep" if waiter.0 == Kind::Ticket => self.set(waiter.1),
            "io" => {
                let (alias, direction) = (line.word(1), line.word(2));
                let side = (Name::of(alias), direction == "read");
                if !self.sides.insert(side) {
                    report("one-waiter", format!("io {alias} {direction} has one already"));
                }
                self.waiters.insert(waiter, side);
            }
            _ => {}
        }
    }

    /// It no longer waits for a descriptor.
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

    /// Moves a life to this state, and updates everything that depends on it: the counts of jobs,
    /// and the waiter and the timer with that name.
    fn go(&mut self, life: Life, to: State) {
        let was = self.states.insert(life, to);
        self.queued += u64::from(to == Queued);
        self.queued -= u64::from(was == Some(Queued));
        self.running += u64::from(matches!(to, Running | Abandoned));
        self.running -= u64::from(matches!(was, Some(Running | Abandoned)));
        match (life.0, to) {
            (Kind::Scope, Limited) => self.set(life.1),
            (Kind::Scope | Kind::Ticket, Ended) => {
                self.leave(&life);
                // A deadline that an `arm` line armed must end by a separate line; a set timer need
                // not.
                if let Some(state @ Set) = self.states.get_mut(&(Kind::Timer, life.1)) {
                    *state = Ended;
                }
            }
            _ => {}
        }
        // A ticket lives until a run has answered it.
        if matches!(to, Answered | Closed)
            || to == Ended && matches!(life.0, Kind::Task | Kind::Scope | Kind::Job)
        {
            self.ended.push_back(life);
        }
        if self.ended.len() > ENDED
            && let Some(old) = self.ended.pop_front()
        {
            self.states.remove(&old);
            self.states.remove(&(Kind::Timer, old.1));
        }
    }

    /// Something other than an `arm` line sets this timer.
    fn set(&mut self, timer: Name) {
        let state = self.states.entry((Kind::Timer, timer)).or_insert(Set);
        *state = if *state == Armed { Armed } else { Set };
    }

    /// Checks that everything has ended that the last line of a kernel does not count.
    fn halt(&self, report: &mut Report<'_>, line: &Line<'_>) {
        let count = |key| line.number(key).unwrap_or(0);
        for ((kind, name), state) in &self.states {
            let counted = match (*kind, state) {
                (Kind::Ticket, Open) => count("tickets"),
                // The timer of a sleep ends with its ticket.
                (Kind::Timer, Armed) if name.0 != 'k' => count("timers"),
                (Kind::Scope, Limited) => count("tasks"),
                _ => continue,
            };
            if counted == 0 {
                report(kind.rule(), format!("{name} is {state:?}"));
            }
        }
        let (left, threads) = (self.queued + self.running, count("threads"));
        if left != threads {
            report("job", format!("{left} have not ended, threads={threads}"));
        }
    }
}
