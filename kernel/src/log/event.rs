//! What can happen, as types: one [`Event`] variant a verb. The kernel makes these values.
//!
//! The table of verbs is the one place that says what a verb looks like.

use std::borrow::Cow;
use std::time::Duration;

use traps::core::names::Direction;
use traps::time::Time;

use super::form::*;
use super::op::{Arrival, Effect, Exit, Need, Op, Outcome, Phase, Reg, Timer, WakeOp, Why};
use super::place::{Alias, Seq, Site, Stop};
use super::words::Text;

table! {
    /// What happened. One variant a verb; the fields stand in the order in which they are printed.
    ///
    /// `at` is a place in the user's source. `cause` is the line behind this one, `grammar.md` says
    /// which.
    pub enum Event<'a>, verb, width 8 {
        /// A task exists. No parent: it is the kernel's own, main, or spawned by another thread;
        /// only in the last case there may be a cause.
        Spawn = "spawn" {
            parent " parent=": Option<u64> = ACTOR,
            cause " cause=": Option<Seq> = Opt(SEQ),
            at " at=": Option<Site<'a>> = Opt(Own),
        },
        /// A task has the CPU, and these of its tickets are answered, in this order.
        Run = "run" {
            cause " cause=": Seq = SEQ,
            /// Since it left the CPU; none if it never had it.
            parked " parked=": Option<Duration> = Opt(Own),
            answered: Cow<'a, [Answered<'a>]> = Answers,
        },
        /// A trap was answered at once. There is a cause if the answer is an interrupt that was
        /// pending. Posts have no place.
        Trap = "trap" {
            op: Op<'a>,
            outcome " = ": Outcome<'a>,
            cause " cause=": Option<Seq> = Opt(SEQ),
            at " at=": Option<Site<'a>> = Opt(Own),
        },
        /// A task has filed a wait, and goes on, or has others. The fields are those of `block`.
        Await = "await" {
            op: Op<'a>,
            ticket " k=": Option<u64> = Opt(COUNT),
            reg " reg=": Option<Reg> = Opt(Own),
            at " at=": Option<Site<'a>> = Opt(Own),
        },
        /// A task left the CPU. `waker` and `parked` have no ticket and no place.
        Block = "block" {
            op: Op<'a>,
            ticket " k=": Option<u64> = Opt(COUNT),
            /// What a wait for a descriptor did about its registration.
            reg " reg=": Option<Reg> = Opt(Own),
            at " at=": Option<Site<'a>> = Opt(Own),
        },
        /// Something came from outside.
        Arrive(what: Arrival<'a>) = "arrive",
        /// The task has read or written so many bytes.
        Io = "io" {
            alias: Alias,
            direction: Direction = DIRECTION,
            bytes " = ": u64 = COUNT,
        },
        /// The task has accepted a connection; its peer in timed traces.
        Accept = "accept" {
            listener: Alias,
            connection " = ": Alias,
            peer " peer=": Option<Text<'a>> = Opt(WORD),
        },
        /// A completion made a task ready. A bare waker has no ticket.
        Wake = "wake" {
            op: WakeOp<'a>,
            ticket " k=": Option<u64> = Opt(COUNT),
            cause " cause=": Seq = SEQ,
        },
        /// An interrupt ended the wait of a ticket. Its cause is a `fire` or `cancel`.
        Deliver = "deliver" {
            ticket: u64 = TICKET,
            outcome " = ": Outcome<'a>,
            cause " cause=": Seq = SEQ,
        },
        /// The future of a ticket was dropped first.
        Withdraw = "withdraw" { ticket: u64 = TICKET },
        /// Someone, or the kernel (none), asked this task to end.
        Cancel = "cancel" {
            by " by=": Option<u64> = ACTOR,
            reason " reason=": Text<'a> = Filled(WORD),
            cause " cause=": Seq = SEQ,
            effect " = ": Effect,
        },
        /// A task is over. Its cause is the `run` in which it ended, or the line that dropped it.
        Exit = "exit" { how: Exit, cause " cause=": Seq = SEQ },
        /// A future or job was dropped before its end: which and why, in words joined by `_`.
        Drop = "drop" { what: Text<'a> = WORD },
        /// The output of that task was taken.
        Join = "join" { task: u64 = TASK },
        /// The I/O of a task never blocked for so many operations, so it gives way.
        Yielded = "yielded" { budget " budget=": u32 = COUNT },
        /// A task held the CPU for too long, between these two traps.
        Longrun = "longrun" { ran " ran=": Time, from " from=": Stop<'a>, to " to=": Stop<'a> },
        /// A scope closed with a value, so long after its deadline.
        Late = "late" { scope: u64 = SCOPE, deadline " deadline=": Time, over " over=": Duration },
        /// Two of `value`, `timeout` and `cancel` came together. The scope is that whose deadline
        /// took part, 0 for none.
        Race = "race" {
            winner " winner=": Text<'a> = WORD,
            loser " loser=": Text<'a> = WORD,
            scope: u64 = Filled(SCOPE),
        },
        /// A misuse that is harmless so far.
        Warn = "warn" { text: Text<'a> = SENTENCE },
        /// The message of a panic.
        Panic = "panic" { text: Text<'a> = SENTENCE },
        /// A system call: the poller watches a descriptor from here, in both directions.
        Register = "register" { alias: Alias, why " why=": Need },
        /// A descriptor is ready and nobody waits, for the n-th time since the last wait.
        Remember = "remember" {
            alias: Alias,
            direction: Direction = DIRECTION,
            n " n=": u32 = COUNT,
        },
        /// A system call: the poller no longer watches a descriptor.
        Unregister = "unregister" { alias: Alias, why " why=": Why },
        /// The poller did not take a descriptor; its error.
        Refuse = "refuse" { alias: Alias, text: Text<'a> = SENTENCE },
        /// A timer is set. Only a connection deadline has a place, and a phase if it was said.
        Arm = "arm" {
            timer: Timer,
            until " until=": Time,
            phase " phase=": Text<'a> = Filled(WORD),
            at " at=": Option<Site<'a>> = Opt(Own),
        },
        /// A timer is taken back.
        Disarm = "disarm" { timer: Timer },
        /// A timer comes true. Its cause is the line that set it: a `block`, `await`, `trap`, `arm`
        /// or `phase`.
        Fire = "fire" { timer: Timer, deadline " deadline=": Time, cause " cause=": Seq = SEQ },
        /// One scan of the table of connection deadlines: how many fired, how many are still armed.
        Tick = "tick" { fired " fired=": u64 = COUNT, armed " armed=": u64 = COUNT },
        /// A job for a thread, under that limiter; how many jobs have a token, this one included if
        /// it has, and how many wait for one.
        Offload = "offload" {
            job: u64 = JOB,
            running " running=": u32 = COUNT,
            queued " queued=": u32 = COUNT,
            limiter " limiter=": Option<Text<'a>> = Opt(WORD),
        },
        /// A job that waited for a token has one now. Its cause is the line that made it free.
        OffloadStarts = "offload" {
            job: u64 = JOB,
            running " starts running=": u32 = COUNT,
            queued " queued=": u32 = COUNT,
            cause " cause=": Seq = SEQ,
        },
        /// A job ended, and its caller waits.
        Done = "done" { job: u64 = JOB },
        /// The caller of a job was answered first; its thread runs on.
        Abandon = "abandon" { job: u64 = JOB },
        /// The result of a job that was abandoned, or that came and was not read.
        Orphan = "orphan" { job: u64 = JOB },
        /// An interrupt that nobody read is pending again in that scope, 0 for the task's own.
        Cleanup = "cleanup" { scope: u64 = SCOPE_OR_ROOT, outcome " = ": Outcome<'a> },
        /// A limit was hit; in `key=value` words.
        Cap = "cap" { text: Text<'a> = SENTENCE },
        /// What the program says.
        Note = "note" { text: Text<'a> = SENTENCE },
        /// A span of the program begins.
        Enter = "enter" { name: Text<'a> = WORD },
        /// It ends, or its future was dropped.
        Leave = "leave" { name: Text<'a> = WORD },
        /// Facts of the machine and the options, in `key=value` words; in timed traces, and in the
        /// `log` facade at `info`.
        Boot = "boot" { text: Text<'a> = SENTENCE },
        /// A phase of the shutdown begins.
        Phase(phase: Phase<'a>) = "phase",
        /// The kernel ends, and this is left; `handles` without the kernel's own, `threads` that
        /// still run a job.
        Halt = "halt" {
            tasks " tasks=": u64 = COUNT,
            tickets " tickets=": u64 = COUNT,
            timers " timers=": u64 = COUNT,
            handles " handles=": u64 = COUNT,
            threads " threads=": u64 = Filled(COUNT),
        },
    }
}

/// One answered ticket in a `run` line.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered<'a> {
    /// The ticket's number.
    pub ticket: u64,
    /// What it came to.
    pub outcome: Outcome<'a>,
}

/// The form of a list of answers: ` k=3 = ok, k=4 = !busy`, or nothing.
pub(super) struct Answers;

impl<'a> Form<Cow<'a, [Answered<'a>]>> for Answers {
    fn absent(&self) -> Option<Cow<'a, [Answered<'a>]>> {
        Some(Cow::Borrowed(&[]))
    }

    fn write(&self, answers: &Cow<'a, [Answered<'a>]>, f: &mut Formatter<'_>) -> fmt::Result {
        for (nth, Answered { ticket, outcome }) in answers.iter().enumerate() {
            write!(f, "{}k={ticket} = {outcome}", if nth == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl Event<'_> {
    /// Whether its detail ends in text that runs to the end of the line, so that nothing may
    /// follow it.
    #[must_use]
    pub fn ends_in_text(&self) -> bool {
        use Event::{Boot, Cap, Note, Panic, Refuse, Warn};
        matches!(
            self,
            Warn { .. } | Panic { .. } | Refuse { .. } | Cap { .. } | Note { .. } | Boot { .. }
        )
    }
}
