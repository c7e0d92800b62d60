//! What can happen, as types: one [`Line`] an event, one [`Event`] variant a verb.
//!
//! Data only. The text of a line is in `text.rs`, its parser in `parse.rs`; the kernel makes
//! these values and knows nothing of either.

use std::borrow::Cow;
use std::time::Duration;

use traps::protocol::Direction;
use traps::time::Time;

use super::op::{Effect, Exit, Op, Outcome, Timer, WakeOp, Why};
use super::phase::Phase;

/// Text that is borrowed where the kernel makes an event and owned where a parser does.
pub type Text<'a> = Cow<'a, str>;

/// The number of an event: gapless, from 1, in the order of the log.
pub type Seq = u64;

/// One line of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Line<'a> {
    /// Kernel time.
    pub at: Time,
    /// The turn of the loop; 0 before the first.
    pub turn: u64,
    /// The number of this event.
    pub seq: Seq,
    /// The task it happened to; 0 is the kernel itself.
    pub task: u64,
    /// The task's name, `kernel` for 0. White space and control characters are shown as `_`.
    pub name: Text<'a>,
    /// What happened.
    pub event: Event<'a>,
    /// What only a timed trace shows; `None` in a stable one.
    pub timed: Option<Timed>,
}

/// Measured spans, in timed traces only. Microseconds inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Timed {
    /// How long the task ran before this line (`block`, `exit`).
    pub ran: Option<Duration>,
    /// How long it was ready before it ran (`run`).
    pub waited: Option<Duration>,
    /// How long after its time it fired (`fire`).
    pub late: Option<Duration>,
}

/// A place in the user's source: `file:line`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site<'a> {
    /// As the compiler was given it.
    pub file: Text<'a>,
    /// From 1.
    pub line: u32,
}

/// A dense name for a descriptor: a letter for its kind, a number in order of first use (`c1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Alias {
    /// `l` listener, `c` connection, `p` pipe, `e` event, `f` any other.
    pub kind: char,
    /// From 1, per letter.
    pub number: u32,
}

/// Where a task stands between two runs: `sleep@FILE:LINE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop<'a> {
    /// The trap, its words joined by `_`, as in `io_c1_read`; or `spawn`, `waker`, `exit`.
    pub trap: Text<'a>,
    /// Where it was made in the user's source.
    pub at: Option<Site<'a>>,
}

/// One answered ticket in a `run` line.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered<'a> {
    /// The ticket's number.
    pub ticket: u64,
    /// What it came to.
    pub outcome: Outcome<'a>,
}

/// What happened. One variant a verb; the fields stand in the order in which they are printed.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// `spawn parent=1 at=FILE:LINE` : a task exists. `parent=-` for the kernel's own, main, and
    /// what other threads spawn.
    Spawn {
        /// Who spawned it.
        parent: Option<u64>,
        /// The line behind it, if another thread did; left out where there is none.
        cause: Option<Seq>,
        /// Where.
        at: Option<Site<'a>>,
    },
    /// `run cause=#4 k=3 = ok` : it has the CPU; with each ticket that is answered, or none.
    Run {
        /// The line that made it ready.
        cause: Seq,
        /// Tickets answered, in order of their answers: ` k=3 = ok, k=4 = !busy`.
        answered: Cow<'a, [Answered<'a>]>,
    },
    /// `trap OP = OUTCOME cause=#8 at=FILE:LINE` : answered at once. `at=` is left out for posts.
    Trap {
        /// What was asked.
        op: Op<'a>,
        /// The answer.
        outcome: Outcome<'a>,
        /// If that is an interrupt that was pending: the line behind it.
        cause: Option<Seq>,
        /// Where in the user's source.
        at: Option<Site<'a>>,
    },
    /// `block OP k=3 at=FILE:LINE` : parked. `k=` and `at=` are left out for `waker` and `parked`.
    Block {
        /// What it waits for.
        op: Op<'a>,
        /// The ticket.
        ticket: Option<u64>,
        /// Where in the user's source.
        at: Option<Site<'a>>,
    },
    /// `wake OP k=3 cause=#8` : a completion made it ready.
    Wake {
        /// What it waited for; a sleep without its span, a descriptor with its direction.
        op: WakeOp,
        /// The ticket; none for a bare waker.
        ticket: Option<u64>,
        /// The line behind it.
        cause: Seq,
    },
    /// `deliver k=3 = !timeout … cause=#8` : an interrupt ends the wait of that ticket.
    Deliver {
        /// The ticket.
        ticket: u64,
        /// The interrupt.
        outcome: Outcome<'a>,
        /// The `fire` or `cancel` line behind it.
        cause: Seq,
    },
    /// `withdraw k=3` : the future was dropped first.
    Withdraw {
        /// The ticket.
        ticket: u64,
    },
    /// `cancel by=2 reason=TEXT cause=#8 = delivered|pending|again|ended`.
    Cancel {
        /// Who; `-` for the kernel.
        by: Option<u64>,
        /// Why; left out when empty.
        reason: Text<'a>,
        /// The line of the request.
        cause: Seq,
        /// What came of it.
        effect: Effect,
    },
    /// `exit ok cause=#8` (cause: its last `run`).
    Exit {
        /// How.
        how: Exit,
        /// The `run` in which it ended, or the line that dropped it.
        cause: Seq,
    },
    /// `drop TEXT` : a future or job was dropped before its end.
    Drop {
        /// Which and why, in words joined by `_`.
        what: Text<'a>,
    },
    /// `join 3` : the output of that task was taken.
    Join {
        /// The task.
        task: u64,
    },
    /// `yielded budget=128` : its I/O never blocked, so it gives way.
    Yielded {
        /// Operations since it began to run.
        budget: u32,
    },
    /// `longrun ran=0.060000 from=sleep@FILE:LINE to=exit` : it held the CPU for too long.
    Longrun {
        /// How long, at least.
        ran: Time,
        /// The trap that it ran from.
        from: Stop<'a>,
        /// The trap that it ran to.
        to: Stop<'a>,
    },
    /// `late s1 deadline=0.500000 over=0.1s` : a scope closed with a value, after its deadline.
    Late {
        /// The scope.
        scope: u64,
        /// Its deadline.
        deadline: Time,
        /// How much later it was closed.
        over: Duration,
    },
    /// `race winner=value loser=timeout s1`.
    Race {
        /// `value`, `timeout` or `cancel`.
        winner: Text<'a>,
        /// The same.
        loser: Text<'a>,
        /// The scope whose deadline took part; 0 for none.
        scope: u64,
    },
    /// `warn TEXT` to the end of the line.
    Warn {
        /// In words.
        text: Text<'a>,
    },
    /// `panic TEXT` to the end of the line.
    Panic {
        /// The message, one line.
        text: Text<'a>,
    },
    /// `register c1 both`
    Register {
        /// Which descriptor.
        alias: Alias,
    },
    /// `defer c1 read` : it stays registered after a wake.
    Defer {
        /// Which descriptor.
        alias: Alias,
        /// Which way it was woken.
        direction: Direction,
    },
    /// `reuse c1 read` : a wait found it registered.
    Reuse {
        /// Which descriptor.
        alias: Alias,
        /// Which way it waits.
        direction: Direction,
    },
    /// `remember c1 read n=3` : an event that nobody waited for (`n` unwanted since the last wait).
    Remember {
        /// Which descriptor.
        alias: Alias,
        /// Which way it is ready.
        direction: Direction,
        /// How many since the last wait.
        n: u32,
    },
    /// `unregister c1 why=suspend`
    Unregister {
        /// Which descriptor.
        alias: Alias,
        /// Why.
        why: Why,
    },
    /// `refuse c1 TEXT` to the end of the line: the poller did not take it.
    Refuse {
        /// Which descriptor.
        alias: Alias,
        /// Its error.
        text: Text<'a>,
    },
    /// `arm s1 until=0.500000` or `arm d1 until=… at=FILE:LINE`
    Arm {
        /// Whose.
        timer: Timer,
        /// When.
        until: Time,
        /// Where in the user's source, for a connection deadline.
        at: Option<Site<'a>>,
    },
    /// `disarm s1`
    Disarm {
        /// Whose.
        timer: Timer,
    },
    /// `fire s1 deadline=0.500000 cause=#3` (cause: the line that armed it).
    Fire {
        /// Whose.
        timer: Timer,
        /// When it was due.
        deadline: Time,
        /// The line that set it: a `block`, `trap`, `arm` or `phase`.
        cause: Seq,
    },
    /// `tick moved=3 far=120` : a scan moved deadlines from the far table to the near heap.
    Tick {
        /// How many moved.
        moved: u64,
        /// How many stay.
        far: u64,
    },
    /// `offload o1 running=1 queued=0 limiter=disk`
    Offload {
        /// The job.
        job: u64,
        /// Jobs that have a token, this one included if it has.
        running: u32,
        /// Jobs that wait for one.
        queued: u32,
        /// The limiter that it is under.
        limiter: Option<Text<'a>>,
    },
    /// `offload o1 starts running=1 queued=0 cause=#9`: it was queued, and has a token now.
    OffloadStarts {
        /// The job.
        job: u64,
        /// Jobs that have a token, this one included.
        running: u32,
        /// Jobs that wait for one.
        queued: u32,
        /// The line that made the token free.
        cause: Seq,
    },
    /// `done o1`
    Done {
        /// The job.
        job: u64,
    },
    /// `abandon o1` : its caller was answered first; the thread runs on.
    Abandon {
        /// The job.
        job: u64,
    },
    /// `orphan o1` : the result of a job that was abandoned, or that came and was not read.
    Orphan {
        /// The job.
        job: u64,
    },
    /// `shield s2 open` / `shield s2 close`
    Shield {
        /// The scope.
        scope: u64,
        /// Whether it opens.
        open: bool,
    },
    /// `cleanup s1 = !timeout …` : an interrupt that nobody read is pending again in that scope.
    Cleanup {
        /// Where it is pending; 0 is the task's root scope, printed `root`.
        scope: u64,
        /// The interrupt.
        outcome: Outcome<'a>,
    },
    /// `cap TEXT` to the end of the line: a limit was hit.
    Cap {
        /// In `key=value` words.
        text: Text<'a>,
    },
    /// `boot TEXT` to the end of the line; timed traces, and the `log` facade at `info`.
    Boot {
        /// In `key=value` words.
        text: Text<'a>,
    },
    /// `phase gate reason=SIGTERM tasks=3`, and so on: a phase of the shutdown begins.
    Phase(Phase<'a>),
    /// `halt tasks=0 tickets=0 timers=0 handles=0`
    Halt {
        /// Tasks left.
        tasks: u64,
        /// Tickets left.
        tickets: u64,
        /// Timers left.
        timers: u64,
        /// Registered descriptors left (the kernel's own not counted).
        handles: u64,
        /// Threads that still run a job; left out when there is none.
        threads: u64,
    },
}
