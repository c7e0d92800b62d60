//! What stands behind a verb: operations, outcomes, timers, the phases of a shutdown.

use std::time::Duration;

use traps::Kind;
use traps::core::names::Direction;
use traps::time::Time;

use super::form::*;
use super::place::{Alias, Primitive, Seq, Site};
use super::words::Text;

table! {
    /// What a trap asks for, behind `trap`, `await` and `block`.
    pub enum Op<'a>, word {
        /// A reading of the clock.
        Clock = "clock",
        /// To the end of the queue.
        Yield = "yield",
        /// The span as it was asked for, and the point it comes to.
        Sleep = "sleep" { span: Duration, until " until=": Time },
        /// Until the descriptor looks ready.
        Io = "io" { alias: Alias, direction: Direction = DIRECTION },
        /// A scope was opened.
        SetTimeout = "set_timeout" {
            /// None for a scope without a limit of its own.
            span: Option<Duration> = Named(&[(None, "none")], Opt(Own)),
            until " until=": Option<Time> = Opt(Own),
        },
        /// That scope was closed.
        UnsetTimeout = "unset_timeout" { scope: u64 = SCOPE },
        /// A connection deadline was made.
        ConnectionDeadline = "connection_deadline",
        /// The scope was opened in which that connection deadline guards.
        Guard = "guard" { deadline: u64 = DEADLINE },
        /// That scope was closed.
        Unguard = "unguard" { scope: u64 = SCOPE },
        /// A scope was opened for one branch of a combinator.
        Branch = "branch",
        /// That scope was closed.
        Unbranch = "unbranch" { scope: u64 = SCOPE },
        /// A scope was opened that holds back interrupts from outside.
        Shield = "shield",
        /// That scope was closed.
        Unshield = "unshield" { scope: u64 = SCOPE },
        /// A request for what is pending here, or held back by a shield.
        CheckCancellation = "check_cancellation",
        /// A task of that name.
        Spawn = "spawn" { name: Text<'a> = WORD },
        /// Its turn in a queue.
        Queue(queue "": QueueOp<'a>) = "",
        /// A job on a thread.
        Offload = "offload" { job: u64 = JOB },
        /// Parked on a waker alone, without a trap.
        Waker = "waker",
        /// A trap that stands beside a wait on a waker. External: it is woken from outside the
        /// kernel.
        Foreign = "foreign" { external: bool = EXTERNAL },
        /// Until any thread wakes it; what it is for.
        Outside = "outside" { what: Text<'a> = WORD, external: bool = EXTERNAL },
        /// In so many waits at once.
        Parked = "parked" { tickets " n=": u64 = COUNT },
    }

    /// What a task waits for in a queue, behind `await`, `block` and `wake`.
    pub enum QueueOp<'a>, word {
        /// The end of that task.
        Join = "join" { task: u64 = TASK },
        /// The next signal.
        Signal = "signal",
        /// A wake or a permit in that queue.
        Wait = "wait" { queue: u64 = QUEUE },
        /// Its turn at a primitive.
        Primitive(primitive "": Box<Primitive<'a>>) = "",
    }

    /// What a completed wait was for, behind `wake`.
    pub enum WakeOp<'a>, word {
        /// Its place at the end of the queue.
        Yield = "yield",
        /// A sleep.
        Sleep = "sleep",
        /// A descriptor.
        Io = "io" { alias: Alias, direction: Direction = DIRECTION },
        /// Its turn in a queue.
        Queue(queue "": QueueOp<'a>) = "",
        /// A job.
        Offload = "offload" { job: u64 = JOB },
        /// A bare waker.
        Waker = "waker",
        /// Any thread, or a task.
        Outside = "outside",
        /// The handle was closed under the wait.
        Closed = "closed" { alias: Alias },
        /// That scope, 0 for the task's own, fired around a wait on a bare waker.
        Scope = "scope" { scope: u64 = SCOPE_OR_ROOT },
    }

    /// A phase of the shutdown, behind `phase`; each says what it waits for.
    pub enum Phase<'a>, word {
        /// The flag is set, who waits for it is woken.
        Close = "close" {
            reason " reason=": Text<'a> = WORD,
            /// Tasks that have not ended.
            tasks " tasks=": u64 = COUNT,
            /// The line behind it; none where it came from outside.
            cause " cause=": Option<Seq> = Opt(SEQ),
        },
        /// Until every hold is dropped, or that time.
        Drain = "drain" { holds " holds=": u64 = COUNT, until " until=": Time },
        /// All tasks that are left are cancelled; how the drain ended.
        Cancel = "cancel" { tasks " tasks=": u64 = COUNT, after " after=": After },
        /// They are awaited, until that time.
        Cleanup = "cleanup" { tasks " tasks=": u64 = COUNT, until " until=": Time },
        /// The grace is over, the tasks that remain are dropped.
        Drop = "drop" { tasks " tasks=": u64 = COUNT },
    }

    /// How the drain of a shutdown ended.
    #[derive(Copy, Eq)]
    pub enum After, word {
        /// Nobody holds it any more.
        Drained = "drained",
        /// It took too long.
        Limit = "limit",
        /// A second signal came.
        Signal = "signal",
        /// The machine failed.
        Failure = "failure",
    }

    /// How a task ended.
    #[derive(Copy, Eq)]
    pub enum Exit, word {
        /// Its future has returned.
        Ok = "ok",
        /// It panicked.
        Panic = "panic",
        /// It ended after a cancellation was delivered to it.
        Cancelled = "cancelled",
        /// Its future was dropped before it ended.
        Dropped = "dropped",
    }

    /// The effect of a request to cancel.
    #[derive(Copy, Eq)]
    pub enum Effect, word {
        /// The task was parked and has it.
        Delivered = "delivered",
        /// It gets it at its next blocking trap.
        Pending = "pending",
        /// An earlier request stands.
        Again = "again",
    }

    /// An arrival from outside: the detail of `arrive`.
    pub enum Arrival<'a>, word {
        /// A descriptor looks ready.
        Io = "" { alias "": Alias, direction: Direction = DIRECTION },
        /// The process got a signal.
        Signal = "" { name "": Text<'a> = SIGNAL },
    }

    /// What a wait for a descriptor did about its registration.
    #[derive(Copy, Eq)]
    pub enum Reg, word {
        /// It registered it.
        New = "new",
        /// The descriptor was registered already: nothing.
        Kept = "kept",
        /// Policy NextSleep: it ended the registration that the task's last wake left in place.
        Changed = "changed",
    }

    /// Why a descriptor was registered.
    #[derive(Copy, Eq)]
    pub enum Need, word {
        /// The first wait for it.
        First = "first",
        /// A wait after its registration had ended.
        Again = "again",
    }

    /// Why a registration was dropped.
    #[derive(Copy, Eq)]
    pub enum Why, word {
        /// Policy Eager: a wake ends it.
        Wake = "wake",
        /// Policy NextSleep: the task left the CPU for something else.
        Suspend = "suspend",
        /// Policy NextSleep: the task waits for another descriptor or direction.
        Other = "other",
        /// Policy NextSleep: the task ended.
        Exit = "exit",
        /// Policy Lazy: too many events that nobody waited for.
        Unwanted = "unwanted",
        /// The wait was interrupted or withdrawn (Eager and NextSleep).
        Interrupt = "interrupt",
        /// The handle was closed.
        Close = "close",
    }

    /// What fires, behind `fire`, `arm` and `disarm`.
    #[derive(Copy, Eq, PartialOrd, Ord)]
    pub enum Timer, word {
        /// The sleep of that ticket.
        Sleep(ticket "": u64 = TICKET) = "",
        /// The deadline of that scope.
        Scope(scope "": u64 = SCOPE) = "",
        /// The end of a shutdown's grace.
        Grace = "grace",
        /// The end of its drain.
        Drain = "drain",
        /// A connection deadline.
        Deadline(number "": u64 = DEADLINE) = "",
    }

    /// How a trap came out, as it is shown behind `=`.
    pub enum Outcome<'a>, word {
        /// It was done.
        Ok = "ok",
        /// A reading of the clock.
        Time(time "": Time) = "",
        /// A task's id, or a count.
        Number(number "": u64 = COUNT) = "",
        /// A scope.
        Scope(scope "": u64 = SCOPE) = "",
        /// A connection deadline.
        Deadline(number "": u64 = DEADLINE) = "",
        /// It was interrupted.
        Interrupt = "" {
            /// Which of the four.
            kind "!": Kind = KIND,
            /// The scope whose deadline fired; 0 for a cancellation.
            scope " scope=": u64 = Filled(SCOPE),
            /// Where that scope was opened (timeouts only).
            set_at " set-at=": Option<Site<'a>> = Opt(Own),
            /// Who cancelled; none for the kernel, and for a timeout.
            by " by=": Option<u64> = Named(
                &[(None, if kind.eq(&Kind::Cancelled) { "-" } else { "" })],
                Opt(TASK),
            ),
            /// Why (cancellations only).
            reason " reason=": Text<'a> = Filled(WORD),
        },
        /// The operation's own error: `busy`, `closed`, `refused TEXT`.
        Error(text "!": Text<'a> = ERROR) = "",
    }
}
