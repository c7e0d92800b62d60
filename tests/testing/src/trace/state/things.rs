//! The parts of a state: tasks, waits, scopes, timers, and the things outside.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use traps::Time;

use crate::trace::Seq;

/// A scope by its number. `None` is the task itself.
pub type In = Option<u64>;

/// A line of the text of a state. [`super::State::row`] returns its text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The first line: the time and the turn.
    Time,
    /// The task that has the CPU.
    Cpu,
    /// The queue of this turn.
    Ready,
    /// The queue of the next turn.
    Next,
    /// A task.
    Task(u64),
    /// An open scope.
    Scope(u64),
    /// An interrupt of a task that is pending.
    Pending(u64, Pending),
    /// An open wait, by its ticket.
    Wait(u64),
    /// A timer.
    Timer(TimerName),
    /// An armed connection deadline.
    Armed(u64),
    /// A descriptor.
    Descriptor(Alias),
    /// A primitive, a queue, or signals: the words of the wait for it.
    Primitive(Box<str>),
    /// The last notification of a primitive or queue that tasks wait for: the words of the wait.
    Notified(Box<str>),
    /// A job.
    Job(u64),
    /// The phase of the shutdown.
    Shutdown,
    /// The messages that `wakeup` moves.
    Messages,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    /// It waits for the CPU.
    Ready,
    /// It has the CPU.
    Running,
    /// It waits for something other than the CPU.
    Parked,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doing::Ready => "ready",
            Doing::Running => "running",
            Doing::Parked => "parked",
        })
    }
}

/// A task that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name.
    pub name: Box<str>,
    /// The state of the task.
    pub doing: Doing,
    /// The time of the line with which this state began.
    pub since: Time,
    /// The number of that line.
    pub from: Seq,
    /// The task that spawned it, if that is known.
    pub parent: Option<u64>,
    /// The location of the spawn, if the log has it.
    pub site: Option<Box<str>>,
    /// Its place in the ready queue, while it is ready. Later places are greater.
    pub place: u64,
    /// Whether it left the CPU to wait for a waker alone.
    pub is_on_a_waker: bool,
    /// Its open waits, by ticket.
    pub waits: BTreeSet<u64>,
    /// Its open scopes, by number. The last one was opened last.
    pub scopes: BTreeSet<u64>,
    /// The interrupts that are pending.
    pub pending: BTreeSet<Pending>,
    /// The named primitives that it holds.
    pub holds: BTreeSet<Box<str>>,
}

/// An interrupt that is pending at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The scope that has fired.
    pub source: In,
    /// The source itself, or a branch inside it.
    pub place: In,
}

/// The place that is the source comes first.
impl Ord for Pending {
    fn cmp(&self, other: &Pending) -> Ordering {
        let key = |it: &Pending| (it.source, it.place != it.source, it.place);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Pending) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The kind of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has a deadline, perhaps without a limit.
    SetTimeout,
    /// The connection deadline of that number interrupts it.
    Guard(u64),
    /// It is one branch of a combinator.
    Branch,
    /// It holds back interrupts from outside.
    Shield,
}

impl Kind {
    /// Whether it is a deadline's.
    #[must_use]
    pub fn is_timeout(self) -> bool {
        matches!(self, Kind::SetTimeout | Kind::Guard(_))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::SetTimeout => f.write_str("set_timeout"),
            Kind::Guard(deadline) => write!(f, "guard d{deadline}"),
            Kind::Branch => f.write_str("branch"),
            Kind::Shield => f.write_str("shield"),
        }
    }
}

/// An open scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Its task.
    pub task: u64,
    /// The kind of the scope.
    pub kind: Kind,
    /// The scope around it.
    pub parent: In,
    /// The deadline of a `set_timeout` with a limit.
    pub until: Option<Time>,
    /// The line that opened it.
    pub seq: Seq,
    /// The time of that line.
    pub since: Time,
    /// The location of the opening, if the log has it.
    pub site: Option<Box<str>>,
    /// The line at which it has fired.
    pub fired: Option<Seq>,
    /// The scopes directly inside.
    pub scopes: BTreeSet<u64>,
    /// The waits directly inside.
    pub waits: BTreeSet<u64>,
}

/// An open wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Its task.
    pub task: u64,
    /// The operation, in the words of the log, such as `sleep 1s until=1.000000` or `io c1 read`.
    pub op: Box<str>,
    /// The line that opened it.
    pub seq: Seq,
    /// The time of that line.
    pub since: Time,
    /// When a sleep ends.
    pub until: Option<Time>,
    /// The scope of the wait.
    pub scope: In,
    /// The location of the trap, if the log has it.
    pub site: Option<Box<str>>,
    /// The table that lists the wait, in addition to that of its task.
    pub(super) store: Store,
}

/// A table that lists a wait, in addition to that of its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    Nowhere,
    Timers(Time),
    Descriptor(Alias, usize),
    /// At the primitive of its `op`.
    Primitive,
}

/// A timer. The order is that in which timers of the same time fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerName {
    /// The end of a sleep, by its ticket.
    Sleep(u64),
    /// The deadline of a scope.
    Scope(u64),
    /// The end of the drain of a shutdown.
    Drain,
    /// The end of the clean-up of a shutdown.
    Grace,
}

impl fmt::Display for TimerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimerName::Sleep(ticket) => write!(f, "k={ticket}"),
            TimerName::Scope(scope) => write!(f, "s{scope}"),
            TimerName::Drain => f.write_str("drain"),
            TimerName::Grace => f.write_str("grace"),
        }
    }
}

/// A connection deadline that is armed, or guards a scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deadline {
    /// The time at which it passes, if it is armed.
    pub until: Option<Time>,
    /// The line that armed it last.
    pub seq: Seq,
    /// The task of that line.
    pub task: u64,
    /// The phase that the deadline limits, if the log has it.
    pub phase: Option<Box<str>>,
    /// The location that armed the deadline, if the log has it.
    pub site: Option<Box<str>>,
    /// The open scopes that it interrupts.
    pub guards: BTreeSet<u64>,
}

/// A descriptor's name: `c1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alias {
    /// The letter of its kind.
    pub letter: char,
    /// Its number.
    pub number: u64,
}

impl Alias {
    /// Reads an alias from a word of the log.
    #[must_use]
    pub fn of(word: &str) -> Option<Alias> {
        let letter = word.chars().next().filter(char::is_ascii_lowercase)?;
        Some(Alias { letter, number: word[1..].parse().ok()? })
    }
}

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.letter, self.number)
    }
}

/// The directions of a descriptor, in the order of the arrays of [`Descriptor`].
pub const DIRECTIONS: [&str; 2] = ["read", "write"];

/// A descriptor that is registered, waited for, or remembered as ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// The poller watches it.
    pub is_registered: bool,
    /// The ticket of the wait for each direction.
    pub waits: [Option<u64>; 2],
    /// The directions that became ready while no task waited.
    pub ready: [bool; 2],
}

/// A permit, or several, that a task holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// How many.
    pub count: u64,
    /// The line that took the last of them.
    pub seq: Seq,
    /// The location of the taking, if the log has it.
    pub site: Option<Box<str>>,
}

/// A primitive or a queue: the tasks that hold it, and the waits for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Primitive {
    /// The holders, by task. Only those of a named primitive are known.
    pub holders: BTreeMap<u64, Hold>,
    /// The open waits for it, by ticket.
    pub waits: BTreeSet<u64>,
}

/// The last notification of a primitive or a queue: a `notify` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notified {
    /// The line.
    pub seq: Seq,
    /// The task that notified; 0 is the kernel.
    pub by: u64,
    /// How many tasks it woke.
    pub woke: u64,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobDoing {
    /// It has a thread.
    Runs,
    /// It waits for one.
    Queued,
    /// It has a thread, and its caller has stopped waiting.
    Abandoned,
}

impl fmt::Display for JobDoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JobDoing::Runs => "runs",
            JobDoing::Queued => "queued",
            JobDoing::Abandoned => "abandoned",
        })
    }
}

/// A job that was given to a thread, and has not come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The task that asked for it.
    pub task: u64,
    /// The state of the job.
    pub doing: JobDoing,
    /// The time of the line with which this state began.
    pub since: Time,
    /// The number of that line.
    pub seq: Seq,
    /// The limiter of the job, if it has one.
    pub limiter: Option<Box<str>>,
}

/// The phase of a shutdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// The phase in the words of the log, `halt` at the end.
    pub phase: Box<str>,
    /// The latest time at which it ends.
    pub until: Option<Time>,
    /// The line with which it began.
    pub seq: Seq,
    /// The time of that line.
    pub since: Time,
}
