//! What stands behind a verb: operations, outcomes, and the closed sets of words in them.
//!
//! Data only, as `event.rs`.

use std::time::Duration;

use traps::Kind;
use traps::protocol::Direction;
use traps::time::Time;

use super::event::{Alias, Site, Text};

/// What a trap asks for, as it is shown behind `trap`, `block`, `wake` and `deliver`.
#[derive(Clone, Debug, PartialEq)]
pub enum Op<'a> {
    /// `clock`
    Clock,
    /// `wall_clock`
    WallClock,
    /// `current_task`
    CurrentTask,
    /// `deadline until=1.000000`: the nearest deadline in force was asked for; what comes back is
    /// its scope.
    Deadline {
        /// Absolute; left out where none is in force.
        until: Option<Time>,
    },
    /// `yield`
    Yield,
    /// `sleep 1s until=1.000000`: the span as asked for, and the point it comes to.
    Sleep {
        /// As asked for.
        span: Duration,
        /// Absolute.
        until: Time,
    },
    /// `io c1 read`
    Io {
        /// Which descriptor.
        alias: Alias,
        /// Which way.
        direction: Direction,
    },
    /// `set_timeout 0.5s` / `set_timeout none`: a scope was opened.
    SetTimeout {
        /// From the trap to the deadline.
        span: Option<Duration>,
        /// Absolute; shown as `until=`, left out where there is none.
        until: Option<Time>,
    },
    /// `unset_timeout s1`: a scope was closed.
    UnsetTimeout {
        /// Its number.
        scope: u64,
    },
    /// `connection_deadline`: a new one was made.
    ConnectionDeadline,
    /// `guard d1`: the scope was opened in which that connection deadline guards.
    Guard {
        /// Its number.
        deadline: u64,
    },
    /// `branch`: a scope without a deadline was opened for one branch of a combinator.
    Branch,
    /// `shield` / `shield 0.5s`: a scope was opened that holds back interrupts from outside.
    Shield {
        /// For so long from the first one; none: until it closes.
        grace: Option<Duration>,
    },
    /// `check_interrupt`: what is pending here was asked for.
    CheckInterrupt,
    /// `held_interrupt`: what is pending or held back here was asked for, and stays.
    HeldInterrupt,
    /// `spawn NAME`
    Spawn {
        /// The child's name.
        name: Text<'a>,
    },
    /// `join 3`
    Join {
        /// The task waited for.
        task: u64,
    },
    /// `cancel 3 reason=TEXT`; the reason is the last field, to the next ` = ` or ` cause=`,
    /// with white space and `=` as `_`.
    Cancel {
        /// The task to cancel.
        task: u64,
        /// Why, in one word or several joined by `_`; left out when empty.
        reason: Text<'a>,
    },
    /// `wait q1`
    Wait {
        /// The scheduling queue, numbered in order of first use.
        queue: u64,
    },
    /// `wake q1 n=1`
    Wake {
        /// The scheduling queue.
        queue: u64,
        /// How many at most; `u64::MAX` is `all`.
        n: u64,
    },
    /// `offload o1`
    Offload {
        /// The job, numbered in order.
        job: u64,
    },
    /// `signal`
    Signal,
    /// `waker`: waiting on a waker alone (no trap was made).
    Waker,
    /// `foreign` / `foreign external`: a trap that stands beside a wait on a waker.
    Foreign {
        /// Whether something outside the kernel will wake it.
        external: bool,
    },
    /// `outside queue_get` / `outside queue_get external`: until it is woken from any thread.
    Outside {
        /// What it is for, in one word.
        what: Text<'a>,
        /// Whether something outside the kernel will wake it.
        external: bool,
    },
    /// `parked n=3`: polled, made no trap, and stays parked in these many earlier ones.
    Parked {
        /// How many tickets.
        tickets: u64,
    },
}

/// How a trap came out, as it is shown behind `=`.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<'a> {
    /// `ok`
    Ok,
    /// `0.500000`: a reading of the clock.
    Time(Time),
    /// `none`: no deadline in force.
    NoTime,
    /// `3`: a task's id, or a count.
    Number(u64),
    /// `s1`: a scope.
    Scope(u64),
    /// `d1`: a connection deadline.
    Deadline(u64),
    /// `!cancelled by=2 reason=TEXT`, `!timeout scope=s3 set-at=examples/nested.rs:14`,
    /// `!timeout-cancellation scope=…`, `!uncaught-timeout …`. `by=-`: no task.
    Interrupt {
        /// Which of the four.
        kind: Kind,
        /// The scope whose deadline fired; 0 for a cancellation (and then not shown).
        scope: u64,
        /// Where that scope was opened (timeouts only).
        set_at: Option<Site<'a>>,
        /// Who cancelled (cancellations only).
        by: Option<u64>,
        /// Why (cancellations only); left out when empty.
        reason: Text<'a>,
    },
    /// `!busy`, `!closed`, `!refused TEXT`: the operation's own error.
    Error(Text<'a>),
    /// `SIGINT` and so on.
    Signal(Text<'a>),
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// `ok`
    Ok,
    /// `panic`
    Panic,
    /// `cancelled`: it ended after a cancellation was delivered to it.
    Cancelled,
    /// `dropped`: its future was dropped before it ended.
    Dropped,
}

/// Why a registration was dropped or left in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// `wake`: policy Eager, a wake ends it.
    Wake,
    /// `suspend`: policy NextSleep, the task left the CPU for something else.
    Suspend,
    /// `other`: policy NextSleep, the task waits for another descriptor or direction.
    Other,
    /// `exit`: policy NextSleep, the task ended.
    Exit,
    /// `unwanted`: policy Lazy, the 16th event that nobody waited for.
    Unwanted,
    /// `interrupt`: the wait was interrupted or withdrawn (Eager and NextSleep).
    Interrupt,
    /// `close`: the handle was closed.
    Close,
}

/// What fired, behind `fire`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// `k=12`: the sleep of that ticket.
    Sleep(u64),
    /// `s3`: the deadline of that scope.
    Scope(u64),
    /// `grace`: the end of a shutdown's grace.
    Grace,
    /// `drain`: the end of its drain.
    Drain,
    /// `d4`: a connection deadline.
    Deadline(u64),
}

/// What a completed wait was for, behind `wake`: one word, and an alias where there is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WakeOp {
    /// `yield`
    Yield,
    /// `sleep`
    Sleep,
    /// `io c1 read`
    Io {
        /// Which descriptor.
        alias: Alias,
        /// Which way.
        direction: Direction,
    },
    /// `join 3`
    Join {
        /// The task that ended.
        task: u64,
    },
    /// `wait q1`
    Wait {
        /// The scheduling queue.
        queue: u64,
    },
    /// `offload o1`
    Offload {
        /// The job.
        job: u64,
    },
    /// `signal`
    Signal,
    /// `waker`
    Waker,
    /// `outside`
    Outside,
    /// `closed c1`: the handle was closed under it.
    Closed {
        /// Which descriptor.
        alias: Alias,
    },
    /// `scope s1`: a scope fired around a wait on a bare waker.
    Scope {
        /// The scope, 0 for `root`.
        scope: u64,
    },
}

/// What came of a request to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// `delivered`: the task was parked and has it.
    Delivered,
    /// `pending`: it gets it at its next blocking trap.
    Pending,
    /// `again`: an earlier request stands.
    Again,
    /// `ended`: the task had ended, and its output was not given out.
    Ended,
}
