//! A task during its life, and its history so far.

use std::time::Duration;

use kernel::trace::Seq;
use testing::trace::Line;
use traps::Time;

use super::life::Shares;
use super::model::{State, long_run};

/// The number and the time of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Its number.
    pub seq: Seq,
    /// Its time.
    pub at: Time,
}

impl Mark {
    /// Of that line.
    pub fn of(line: &Line<'_>) -> Mark {
        Mark { seq: line.seq, at: line.at }
    }
}

/// A scope that is open.
#[derive(Clone, Debug)]
pub struct Scope {
    /// `s1`
    pub name: Box<str>,
    /// The kind of the scope.
    pub kind: Kind,
}

/// The kind of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has a deadline.
    Limit,
    /// It has none.
    NoLimit,
    /// This connection deadline guards it.
    Guard(u64),
    /// It holds back interrupts from outside.
    Shield,
}

/// The largest number of waits of a task that are described one by one.
pub const SHOWN: usize = 3;

/// A task that has not ended.
#[derive(Clone, Debug, Default)]
pub struct Living {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: Box<str>,
    /// The task that spawned it.
    pub parent: Option<u64>,
    /// The call site of the spawn.
    pub site: Option<Box<str>>,
    /// Its state; unknown in a log without its first lines.
    pub state: Option<State>,
    /// The line with which that state began.
    pub from: Mark,
    /// How it spent its time before that state.
    pub shares: Shares,
    /// The line with which its last run began.
    pub ran_from: Mark,
    /// Whether the log has the measured time of each run.
    pub is_timed: bool,
    /// The length of its last run by the times of its lines, in a log that is not timed.
    pub loose: Duration,
    /// The part of a long run that is not yet in the times of the lines.
    pub owed: Duration,
    /// How often it had the CPU.
    pub runs: u64,
    /// How many traps it made.
    pub traps: u64,
    /// The lines of its open waits, oldest first. A `block` line without a ticket is open until
    /// the next run.
    pub waits: Vec<Line<'static>>,
    /// The wait that ended last since the task ran, because the end of a task drops its waits
    /// first.
    pub over: Option<Line<'static>>,
    /// The scopes that are open, outermost first.
    pub scopes: Vec<Scope>,
    /// The connection deadlines that it has made.
    pub deadlines: Vec<u64>,
    /// A connection that it serves, and the peer.
    pub peer: Option<(Box<str>, Box<str>)>,
}

impl Living {
    /// The waits with tickets; if there are none, the wait of its last `block` line.
    pub fn open_waits(&self) -> Vec<&Line<'static>> {
        let named: Vec<_> = self.waits.iter().filter(|wait| wait.number("k").is_some()).collect();
        match named.is_empty() {
            true => self.waits.last().or(self.over.as_ref()).into_iter().collect(),
            false => named,
        }
    }

    /// The call site of its wait, if the log has it.
    pub fn waits_at(&self) -> Option<String> {
        let waits = self.open_waits();
        let mut sites: Vec<_> = waits.iter().filter_map(|wait| wait.key("at")).collect();
        sites.dedup();
        sites.truncate(SHOWN);
        if sites.is_empty() { None } else { Some(sites.join(", ")) }
    }

    /// Its times up to that time.
    pub fn shares_until(&self, end: Time) -> Shares {
        let mut task = Living { shares: self.shares, owed: self.owed, ..self.bare() };
        task.spend(end, "");
        task.shares
    }

    fn bare(&self) -> Living {
        let Living { state, from, is_timed, .. } = *self;
        Living { state, from, is_timed, ..Living::default() }
    }

    /// Counts the time since its state began, up to a line with that verb.
    ///
    /// In a log that is not timed, the clock is not read when a run begins or ends, so the times of
    /// these lines do not show the length of the run. Only a `longrun` line does. Its time is then
    /// a part of the times of this run and of the next lines.
    fn spend(&mut self, end: Time, verb: &str) {
        let Some(state) = self.state else { return };
        let span = end.since(self.from.at);
        if !state.lasts_until(verb) {
            self.shares.unknown += span;
            return;
        }
        if state == State::Run && self.is_timed {
            self.shares.run += span;
            return;
        }
        let paid = self.owed.min(span);
        self.owed -= paid;
        let rest = span - paid;
        match state {
            State::Run => (self.shares.unknown, self.loose) = (self.shares.unknown + rest, rest),
            State::Ready => self.shares.ready += rest,
            State::Blocked => self.shares.blocked += rest,
        }
    }

    /// Counts a run with a `longrun` line, which follows the `block` line or precedes the `exit`
    /// line of the run.
    fn ran(&mut self, ran: Duration) {
        let paid =
            if self.state == Some(State::Run) { Duration::ZERO } else { self.loose.min(ran) };
        self.shares.unknown -= paid;
        self.shares.run += ran;
        (self.loose, self.owed) = (Duration::ZERO, self.owed + (ran - paid));
    }

    /// Returns its name, and the peer of its connection.
    pub fn name_and_peer(&self) -> String {
        match &self.peer {
            Some((_, peer)) => format!("{} {peer}", self.name),
            None => self.name.to_string(),
        }
    }

    /// Changes its state, and may begin a wait. `is_head`: the line is in the head of a dump, whose
    /// traps do not count, because the others of that time are missing.
    pub fn follow(&mut self, line: &Line<'_>, is_head: bool) {
        self.runs += u64::from(line.verb == "run");
        self.traps += u64::from(trap(line).is_some() && !is_head);
        let next = State::after(self.state, line.verb);
        if next.is_some() {
            self.spend(line.at, line.verb);
            (self.state, self.from) = (next, Mark::of(line));
        }
        if let Some(ran) = long_run(line).filter(|_| !self.is_timed) {
            self.ran(ran);
        }
        match line.verb {
            "run" => {
                self.ran_from = Mark::of(line);
                self.waits.retain(|wait| wait.number("k").is_some());
                self.over = None;
            }
            "block" | "await" => self.waits.push(line.clone().into_owned()),
            _ => {}
        }
    }

    /// Ends one of its tickets. Returns whether the ticket was open.
    pub fn close(&mut self, ticket: u64) -> bool {
        let place = self.waits.iter().position(|wait| wait.number("k") == Some(ticket));
        if let Some(place) = place {
            self.over = Some(self.waits.remove(place));
        }
        place.is_some()
    }
}

/// A piece of a task's life that a line ends.
pub struct Piece<'n> {
    /// Whose.
    pub task: &'n Living,
    /// The state of the task in the piece.
    pub state: State,
    /// The line with which the piece began.
    pub from: Mark,
    /// How long it took.
    pub span: Duration,
}

/// The word of a trap that a task made.
pub fn trap<'l>(line: &'l Line<'_>) -> Option<&'l str> {
    let word = Some(line.word(0)).filter(|_| ["trap", "block", "await"].contains(&line.verb));
    word.filter(|word| !["waker", "parked"].contains(word))
}
