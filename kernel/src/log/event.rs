//! The lines of the log, as types: a [`Line`], its [`Event`], and the values in an event. The
//! kernel makes these values.
//!
//! Two tables define the type and the text of each event and of most values, and nothing else does:
//! the table of verbs, and the table of what follows a verb. After the tables come the values that
//! have no words of their own: positions in the log, locations in the source, and names of
//! descriptors.

use std::borrow::Cow;
use std::time::Duration;

use traps::Kind;
use traps::internal::table::Direction;
use traps::time::Time;

use super::form::*;
use super::pack::*;

/// A line of the log.
///
/// ```
/// use std::{cell::RefCell, rc::Rc, time::Duration};
/// use kernel::trace::Line;
/// use kernel::{Kernel, Sim};
///
/// let mut kernel = Kernel::new(Sim::new());
/// let log = Rc::new(RefCell::new(Vec::new()));
/// let keeps = log.clone();
/// kernel.observe(move |line: &Line<'_>| {
///     keeps.borrow_mut().push((line.seq, line.event.verb(), line.event.cause()));
/// });
/// kernel.run(traps::sleep(Duration::from_secs(1))).unwrap().unwrap();
/// let log = log.borrow();
/// let (_, _, cause) = log.iter().find(|(_, verb, _)| *verb == "fire").unwrap();
/// let (_, verb, _) = log.iter().find(|(seq, _, _)| Some(*seq) == *cause).unwrap();
/// assert_eq!(*verb, "block"); // the timer fired because the task had blocked
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Line<'a> {
    /// The kernel time.
    pub at: Time,
    /// The turn of the loop, or 0 before the first turn.
    pub turn: u64,
    /// The number of the event.
    pub seq: Seq,
    /// The task of the event, or 0 for the kernel itself.
    pub task: u64,
    /// The name of the task, or `kernel` for 0. White space and control characters are shown as
    /// `_`.
    pub name: Text<'a>,
    /// The event.
    pub event: Event<'a>,
    /// The measured times, in a timed trace only.
    pub timed: Option<Timed>,
}

/// The measured times of a line, in timed traces only. They are exact to a microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Timed {
    /// The time for which the task has run before this line (`block`, `exit`).
    pub ran: Option<Duration>,
    /// The time for which the task was ready before it ran (`run`).
    pub waited: Option<Duration>,
    /// The time from the deadline of the timer to this line (`fire`).
    pub late: Option<Duration>,
}

/// Writes the columns of a log line, and its measured times. Allocates nothing once `out` has room,
/// unless a free text has characters that must be replaced.
impl<'a> Form<Line<'a>> for Own {
    fn put(&self, before: &str, line: &Line<'a>, out: &mut Out) {
        out.text(before);
        let Line { at, turn, seq, task, name, event, timed } = line;
        // Pad the seconds to two digits.
        Own.put(if at.as_micros() < 10_000_000 { " " } else { "" }, at, out);
        Number("", 7, b' ').put(" ", turn, out);
        SEQ.put("  ", seq, out);
        Number("", 3, b' ').put(" ", task, out);
        out.text(" ");
        out.column(&word(name), 8);
        Own.put(" ", event, out);
        if let Some(Timed { ran, waited, late }) = timed
            && !event.ends_in_text()
        {
            Opt(Own).put(" ran=", ran, out);
            Opt(Own).put(" waited=", waited, out);
            Opt(Own).put(" late=", late, out);
        }
    }
}

display!(Line<'a>);

table! {
    /// An event of the kernel. There is one variant per verb. The fields are printed in the order
    /// of their declaration.
    ///
    /// `at` is a location in the user's source. `cause` is the line that caused this one;
    /// `grammar.md` tells which line that is for each verb.
    pub enum Event<'a>, verb, width 8 {
        /// A task was made. Only the kernel's own task has no location.
        Spawn = "spawn" {
            parent " parent=": Parent,
            at " at=": Option<LoggedSite> = Opt(Own),
        },
        /// A task has got the CPU. Its tickets listed here are answered, in this order.
        Run = "run" {
            cause " cause=": Seq = SEQ,
            /// The number of messages of other threads that the kernel's own task handles.
            messages " messages=": u64 = Filled(COUNT),
            /// The time since the task left the CPU. None if this is its first run.
            parked " parked=": Option<Duration> = Opt(Own),
            answered: Cow<'a, [Answered<'a>]>,
        },
        /// A trap was answered at once. There is a cause if the answer is a pending interrupt.
        /// Posts have no location. `scope` is where an interrupt was met, or where a scope was
        /// opened, unless that is the default.
        Trap = "trap" {
            op: Op<'a>,
            scope " in=": Option<u64> = Opt(SCOPE_OR_ROOT),
            outcome " = ": Outcome<'a>,
            cause " cause=": Option<Seq> = Opt(SEQ),
            at " at=": Option<LoggedSite> = Opt(Own),
        },
        /// A task has filed a wait, and continues or has other waits. The fields are those of
        /// `block`.
        Await = "await" {
            op: Op<'a>,
            wait " k=": LoggedWait,
        },
        /// A task has left the CPU: for this one wait, or, without one, for those that have `await`
        /// lines or for a waker alone.
        Block = "block" {
            op: Op<'a>,
            wait " k=": Option<LoggedWait> = Opt(Own),
        },
        /// An event arrived from outside.
        Arrive(what: Arrival<'a>) = "arrive",
        /// The task has read or written this many bytes.
        Io = "io" {
            alias: Alias,
            direction: Direction = DIRECTION,
            bytes " = ": u64 = COUNT,
        },
        /// The task has accepted a connection. Timed traces have its peer.
        Accept = "accept" {
            listener: Alias,
            connection " = ": Alias,
            peer " peer=": Option<Text<'a>> = Opt(WORD),
        },
        /// The end of a wait, or a call of a waker, has made a task ready. A plain waker has no
        /// ticket. Of the operation, only the word and the object are printed.
        Wake = "wake" {
            op: Op<'a> = Ended,
            ticket " k=": Option<u64> = Opt(COUNT),
            cause " cause=": Seq = SEQ,
        },
        /// An interrupt has ended the wait of a ticket. Its cause is a `fire` or `cancel`.
        Deliver = "deliver" {
            ticket: u64 = TICKET,
            outcome " = ": Outcome<'a>,
            cause " cause=": Seq = SEQ,
        },
        /// The future of a ticket was dropped before its wait ended.
        Withdraw = "withdraw" { ticket: u64 = TICKET },
        /// A wait or a scope is in another scope now, because its future was polled there.
        Move = "move" { what: Moved, scope " in=": u64 = SCOPE_OR_ROOT },
        /// The task has taken a permit of a named primitive.
        Take = "take" {
            kind: Text<'a> = WORD,
            name: Text<'a> = WORD,
            at " at=": Option<LoggedSite> = Opt(Own),
        },
        /// The task has given back a permit of a named primitive, or another task's permit.
        Give = "give" {
            kind: Text<'a> = WORD,
            name: Text<'a> = WORD,
            from " from=": Option<u64> = Opt(TASK),
        },
        /// The task wakes this many of the first waits in a queue.
        Notify = "notify" { op: Op<'a>, woke " woke=": u64 = COUNT },
        /// The cancellation of a task was requested. `by` is the task that requested it, if a task
        /// did.
        Cancel = "cancel" {
            by " by=": Option<u64> = ACTOR,
            reason " reason=": Text<'a> = Filled(WORD),
            cause " cause=": Seq = SEQ,
            effect " = ": Effect,
        },
        /// A task has ended. Its cause is the `run` in which it ended, or the line that dropped it.
        Exit = "exit" { how: Exit, cause " cause=": Seq = SEQ },
        /// The future of a task was dropped before its end. The words of the reason are joined by
        /// `_`.
        Drop = "drop" { why: Text<'a> = WORD },
        /// A job was dropped before it ran.
        DropJob = "drop" { job: u64 = JOB },
        /// The output of the ended task with this number was taken, or a join returned its panic.
        Join = "join" { task: u64 = TASK },
        /// A task yields, because this many I/O operations in a row did not block.
        Yielded = "yielded" { budget " budget=": u32 = COUNT },
        /// A task ran for too long between these two traps, with at most this much CPU time.
        Longrun = "longrun" {
            ran " ran=": Time,
            cpu " cpu=": Option<Time> = Opt(Own),
            from " from=": Stop<'a>,
            to " to=": Stop<'a>,
        },
        /// A scope closed with a value, this long after its deadline.
        Late = "late" { scope: u64 = SCOPE, deadline " deadline=": Time, over " over=": Duration },
        /// Two results raced: the task already had the winner (`value`, `timeout` or `cancel`) when
        /// the loser came. `scope` is the scope whose deadline took part, or 0.
        Race = "race" {
            winner " winner=": Text<'a> = WORD,
            loser " loser=": Text<'a> = WORD,
            scope: u64 = Filled(SCOPE),
        },
        /// A misuse that was tolerated.
        Warn = "warn" { text: Text<'a> = SENTENCE },
        /// The message of a panic.
        Panic = "panic" { text: Text<'a> = SENTENCE },
        /// A system call: the poller now watches a descriptor, in both directions.
        Register = "register" { alias: Alias, why " why=": Need },
        /// A descriptor has become ready and no task waits for it.
        Remember = "remember" { alias: Alias, direction: Direction = DIRECTION },
        /// A system call: the poller no longer watches a descriptor.
        Unregister = "unregister" { alias: Alias, why " why=": Why },
        /// A descriptor that the poller was not watching was closed.
        Close = "close" { alias: Alias },
        /// The poller has refused a descriptor, with this error.
        Refuse = "refuse" { alias: Alias, text: Text<'a> = SENTENCE },
        /// A timer was set. Only a connection deadline has a location, and a phase if the program
        /// named one.
        Arm = "arm" {
            timer: Timer,
            until " until=": Time,
            phase " phase=": Text<'a> = Filled(WORD),
            at " at=": Option<LoggedSite> = Opt(Own),
        },
        /// A timer was removed.
        Disarm = "disarm" { timer: Timer },
        /// A timer has fired. Its cause is the line that set it: a `block`, `await`, `trap`, `arm`
        /// or `phase`.
        Fire = "fire" { timer: Timer, deadline " deadline=": Time, cause " cause=": Seq = SEQ },
        /// The table of connection deadlines was scanned: how many have fired, and how many are
        /// still armed.
        Tick = "tick" { fired " fired=": u64 = COUNT, armed " armed=": u64 = COUNT },
        /// A task has asked for a job on a thread, under this limiter. The numbers are the jobs
        /// with a token, this job included if it has one, and the jobs that wait for a token.
        Offload = "offload" {
            job: u64 = JOB,
            running " running=": u32 = COUNT,
            queued " queued=": u32 = COUNT,
            limiter " limiter=": Option<Text<'a>> = Opt(WORD),
        },
        /// A job that waited for a token has got a token. Its cause is the line that freed the
        /// token.
        OffloadStarts = "offload" {
            job: u64 = JOB,
            running " starts running=": u32 = COUNT,
            queued " queued=": u32 = COUNT,
            cause " cause=": Seq = SEQ,
        },
        /// A job has ended, and its caller waits for it.
        Done = "done" { job: u64 = JOB },
        /// The caller of a job has stopped waiting. The job's thread continues.
        Abandon = "abandon" { job: u64 = JOB },
        /// A job has a result that no task takes: it was abandoned, or its future was dropped.
        Orphan = "orphan" { job: u64 = JOB },
        /// An interrupt of this scope (0 for the task's own) that no task has read is pending
        /// again: at the scope itself, or at a branch inside it.
        Cleanup = "cleanup" {
            scope: u64 = SCOPE_OR_ROOT,
            place " in=": Option<u64> = Opt(SCOPE),
            outcome " = ": Outcome<'a>,
        },
        /// A limit was reached. The text has `key=value` words.
        Cap = "cap" { text: Text<'a> = SENTENCE },
        /// A message of the program.
        Note = "note" { text: Text<'a> = SENTENCE },
        /// A span of the program begins.
        Enter = "enter" { name: Text<'a> = WORD },
        /// A span of the program ends, or its future was dropped.
        Leave = "leave" { name: Text<'a> = WORD },
        /// The facts of the machine and the options, in `key=value` words. Only timed traces have
        /// this line, and the `log` facade at `info`.
        Boot = "boot" { text: Text<'a> = SENTENCE },
        /// A phase of the shutdown begins.
        Phase(phase: Phase<'a>) = "phase",
        /// The kernel ends. The numbers are the things that are left: `handles` excludes the
        /// kernel's own, and `threads` are those that still run a job.
        Halt = "halt" {
            tasks " tasks=": u64 = COUNT,
            tickets " tickets=": u64 = COUNT,
            timers " timers=": u64 = COUNT,
            handles " handles=": u64 = COUNT,
            threads " threads=": u64 = Filled(COUNT),
        },
    }
}

/// A new wait, as printed in an `await` or `block` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedWait {
    /// The number of the wait's ticket.
    pub ticket: u64,
    /// The effect of a wait for a descriptor on its registration.
    pub reg: Option<Reg>,
    /// The scope of the wait (0 for the task's own), unless it is the default.
    pub scope: Option<u64>,
    /// The location of the trap.
    pub at: LoggedSite,
}

impl Form<LoggedWait> for Own {
    fn put(&self, before: &str, wait: &LoggedWait, out: &mut Out) {
        let LoggedWait { ticket, reg, scope, at } = wait;
        COUNT.put(before, ticket, out);
        Opt(Own).put(" reg=", reg, out);
        Opt(SCOPE_OR_ROOT).put(" in=", scope, out);
        Own.put(" at=", at, out);
    }
}

impl Pack<LoggedWait> for Own {
    #[inline(always)]
    fn pack(&self, LoggedWait { ticket, reg, scope, at }: &LoggedWait, out: &mut Packed<'_>) {
        COUNT.pack(ticket, out);
        Opt(Own).pack(reg, out);
        Opt(SCOPE_OR_ROOT).pack(scope, out);
        Own.pack(at, out);
    }

    fn take(&self, from: &mut Unpack<'_>) -> LoggedWait {
        let (ticket, reg) = (COUNT.take(from), Opt(Own).take(from));
        LoggedWait { ticket, reg, scope: Opt(SCOPE_OR_ROOT).take(from), at: Own.take(from) }
    }
}

/// An answered ticket in a `run` line.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered<'a> {
    /// The number of the ticket.
    pub ticket: u64,
    /// The result of the wait.
    pub outcome: Outcome<'a>,
}

/// Writes a list of answers as ` k=3 = ok, k=4 = !busy`, or nothing if the list is empty.
impl<'a> Form<Cow<'a, [Answered<'a>]>> for Own {
    fn put(&self, before: &str, answers: &Cow<'a, [Answered<'a>]>, out: &mut Out) {
        for (nth, Answered { ticket, outcome }) in answers.iter().enumerate() {
            TICKET.put(if nth == 0 { before } else { ", " }, ticket, out);
            Own.put(" = ", outcome, out);
        }
    }
}

impl<'a> Pack<Cow<'a, [Answered<'a>]>> for Own {
    #[inline(always)]
    fn pack(&self, answers: &Cow<'a, [Answered<'a>]>, out: &mut Packed<'_>) {
        out.number(answers.len() as u64);
        for Answered { ticket, outcome } in answers.iter() {
            TICKET.pack(ticket, out);
            Own.pack(outcome, out);
        }
    }

    fn take(&self, from: &mut Unpack<'_>) -> Cow<'a, [Answered<'a>]> {
        let count = from.number();
        let answer = |_| Answered { ticket: TICKET.take(from), outcome: Own.take(from) };
        (0..count).map(answer).collect()
    }
}

impl Event<'_> {
    /// Returns the number of the line that caused this one, as printed after `cause=`. Returns
    /// `None` if the event has no cause, or has several.
    #[must_use]
    pub fn cause(&self) -> Option<Seq> {
        match self {
            Event::Run { cause, .. }
            | Event::Wake { cause, .. }
            | Event::Deliver { cause, .. }
            | Event::Cancel { cause, .. }
            | Event::Exit { cause, .. }
            | Event::Fire { cause, .. }
            | Event::OffloadStarts { cause, .. } => Some(*cause),
            Event::Trap { cause, .. } | Event::Phase(Phase::Close { cause, .. }) => *cause,
            Event::Spawn { parent: Parent::Thread(cause), .. } => Some(*cause),
            _ => None,
        }
    }

    /// Returns whether the detail of the event ends in text that runs to the end of the log line.
    /// Nothing can follow such a text.
    #[must_use]
    pub fn ends_in_text(&self) -> bool {
        use Event::{Boot, Cap, Note, Panic, Refuse, Warn};
        matches!(
            self,
            Warn { .. } | Panic { .. } | Refuse { .. } | Cap { .. } | Note { .. } | Boot { .. }
        )
    }
}

table! {
    /// The operation of a trap, as printed after `trap`, `await`, `block` and `wake`. The last four
    /// variants are no traps. They say why a task has left the CPU or is ready again, after `block`
    /// and `wake`.
    pub enum Op<'a>, word {
        /// A reading of the clock.
        Clock = "clock",
        /// A yield: the task goes to the end of the ready queue.
        Yield = "yield",
        /// A sleep: the requested duration, and the point at which it ends.
        Sleep = "sleep" { span: Duration, until " until=": Time },
        /// A wait until a descriptor looks ready.
        Io = "io" { alias: Alias, direction: Direction = DIRECTION },
        /// The opening of a scope that can have a time limit.
        SetTimeout = "set_timeout" {
            /// The time limit, or `None` for a scope without a limit of its own.
            span: Option<Duration> = Named(&[(None, "none")], Opt(Own)),
            until " until=": Option<Time> = Opt(Own),
        },
        /// The closing of a scope that `set_timeout` opened.
        UnsetTimeout = "unset_timeout" { scope: u64 = SCOPE },
        /// A new connection deadline.
        ConnectionDeadline = "connection_deadline",
        /// The opening of a scope that the connection deadline with this number guards.
        Guard = "guard" { deadline: u64 = DEADLINE },
        /// The closing of a scope that `guard` opened.
        Unguard = "unguard" { scope: u64 = SCOPE },
        /// The opening of a scope for one branch of a combinator.
        Branch = "branch",
        /// The closing of a scope that `branch` opened.
        Unbranch = "unbranch" { scope: u64 = SCOPE },
        /// The opening of a scope that holds back interrupts from outside.
        Shield = "shield",
        /// The closing of a scope that `shield` opened.
        Unshield = "unshield" { scope: u64 = SCOPE },
        /// A check for an interrupt that is pending, or that a shield holds back.
        CheckCancellation = "check_cancellation",
        /// The spawn of a task with this name.
        Spawn = "spawn" { name: Text<'a> = WORD },
        /// A wait for the end of the task with this number.
        Join = "join" { task: u64 = TASK },
        /// A wait for the next signal.
        Signal = "signal",
        /// A wait for a wake or a permit in the queue with this number.
        Wait = "wait" { queue: u64 = QUEUE },
        /// A wait at a primitive, such as a mutex.
        Primitive(primitive "": LoggedPrimitive<'a>) = "",
        /// A wait for a job on a thread.
        Offload = "offload" { job: u64 = JOB },
        /// A trap that accompanies a wait on a waker. If it is external, the wake comes from
        /// outside the kernel.
        Foreign = "foreign" { external: bool = EXTERNAL },
        /// A wait until any thread wakes the task, for this purpose.
        Outside = "outside" { what: Text<'a> = WORD, external: bool = EXTERNAL },
        /// A wait on a waker alone, without a trap.
        Waker = "waker",
        /// Several waits of a task at once, with the number of the waits.
        Parked = "parked" { tickets " n=": u64 = COUNT },
        /// The closing of a handle while a task waits for the handle's descriptor.
        Closed = "closed" { alias: Alias },
        /// The firing of a scope around a wait on a waker alone. The number 0 means the task's own
        /// scope.
        Scope = "scope" { scope: u64 = SCOPE_OR_ROOT },
    }

    /// The maker of a task, as printed after `parent=`.
    #[derive(Copy, Eq)]
    pub enum Parent, word {
        /// The kernel, which makes its own task and main.
        Kernel = "-",
        /// Another thread. The cause is the `run` of `wakeup` in which its message was handled.
        Thread(cause " cause=": Seq = SEQ) = "-",
        /// A task.
        Task(task "": u64 = TASK) = "",
    }

    /// A phase of the shutdown, as printed after `phase`, with the things that the phase waits for.
    pub enum Phase<'a>, word {
        /// Marks the shutdown as begun, and wakes the tasks that wait for the shutdown.
        Close = "close" {
            reason " reason=": Text<'a> = WORD,
            /// The number of tasks that have not ended.
            tasks " tasks=": u64 = COUNT,
            /// The log line of the event that caused the shutdown. None if the request came from
            /// outside the log.
            cause " cause=": Option<Seq> = Opt(SEQ),
        },
        /// Waits until every hold is dropped, or until this time.
        Drain = "drain" { holds " holds=": u64 = COUNT, until " until=": Time },
        /// Cancels all remaining tasks. `after` is the reason for the end of the drain.
        Cancel = "cancel" { tasks " tasks=": u64 = COUNT, after " after=": After },
        /// Waits for the cancelled tasks, until this time.
        Cleanup = "cleanup" { tasks " tasks=": u64 = COUNT, until " until=": Time },
        /// Drops the remaining tasks, because the grace period is over.
        Drop = "drop" { tasks " tasks=": u64 = COUNT },
    }

    /// The reason for the end of a shutdown's drain.
    #[derive(Copy, Eq)]
    pub enum After, word {
        /// No hold is left.
        Drained = "drained",
        /// The time limit has passed.
        Limit = "limit",
        /// A second signal has arrived.
        Signal = "signal",
        /// The machine has failed.
        Failure = "failure",
    }

    /// The outcome of a task that has ended.
    #[derive(Copy, Eq)]
    pub enum Exit, word {
        /// The task's future has returned.
        Ok = "ok",
        /// The task has panicked.
        Panic = "panic",
        /// The task has ended after a cancellation was delivered to it.
        Cancelled = "cancelled",
        /// The task's future was dropped before it ended.
        Dropped = "dropped",
    }

    /// The effect of a request to cancel.
    #[derive(Copy, Eq)]
    pub enum Effect, word {
        /// The task was parked and has received the cancellation.
        Delivered = "delivered",
        /// The task receives the cancellation at its next blocking trap.
        Pending = "pending",
        /// The task was cancelled already, so this request has no effect.
        Again = "again",
    }

    /// An arrival from outside: the detail of `arrive`.
    pub enum Arrival<'a>, word {
        /// A descriptor looks ready.
        Io = "" { alias "": Alias, direction: Direction = DIRECTION },
        /// The process has received a signal.
        Signal = "" { name "": Text<'a> = SIGNAL },
    }

    /// The effect of a wait for a descriptor on its registration.
    #[derive(Copy, Eq)]
    pub enum Reg, word {
        /// The wait has registered the descriptor.
        New = "new",
        /// The descriptor was registered already.
        Kept = "kept",
        /// Policy NextSleep: the wait has ended the registration that the task's last wake left in
        /// place.
        Changed = "changed",
    }

    /// The reason for a registration with the poller.
    #[derive(Copy, Eq)]
    pub enum Need, word {
        /// The first wait for the descriptor.
        First = "first",
        /// A wait after the earlier registration has ended.
        Again = "again",
    }

    /// The reason for the end of a registration with the poller.
    #[derive(Copy, Eq)]
    pub enum Why, word {
        /// Policy Eager: a wake has ended the registration.
        Wake = "wake",
        /// Policy NextSleep: the task has left the CPU for another wait.
        Suspend = "suspend",
        /// Policy NextSleep: the task waits for another descriptor or direction.
        Other = "other",
        /// Policy NextSleep: the task has ended.
        Exit = "exit",
        /// The wait was interrupted or withdrawn (Eager and NextSleep).
        Interrupt = "interrupt",
        /// The handle was closed.
        Close = "close",
    }

    /// A timer, as printed after `fire`, `arm` and `disarm`.
    #[derive(Copy, Eq, PartialOrd, Ord)]
    pub enum Timer, word {
        /// The timer of the sleep with this ticket.
        Sleep(ticket "": u64 = TICKET) = "",
        /// The deadline of the scope with this number.
        Scope(scope "": u64 = SCOPE) = "",
        /// The end of a shutdown's grace period.
        Grace = "grace",
        /// The end of a shutdown's drain.
        Drain = "drain",
        /// The connection deadline with this number.
        Deadline(number "": u64 = DEADLINE) = "",
    }

    /// The thing that is in another scope now, as printed after `move`.
    #[derive(Copy, Eq, PartialOrd, Ord)]
    pub enum Moved, word {
        /// The wait of this ticket.
        Wait(ticket "": u64 = TICKET) = "",
        /// The scope with this number.
        Scope(scope "": u64 = SCOPE) = "",
    }

    /// The result of a trap, as printed after `=`.
    pub enum Outcome<'a>, word {
        /// Success without a value.
        Ok = "ok",
        /// A reading of the clock.
        Time(time "": Time) = "",
        /// The number of a task, or a count.
        Number(number "": u64 = COUNT) = "",
        /// The number of an opened scope.
        Scope(scope "": u64 = SCOPE) = "",
        /// The number of a new connection deadline.
        Deadline(number "": u64 = DEADLINE) = "",
        /// An interrupt.
        Interrupt = "" {
            /// The kind of the interrupt.
            kind "!": Kind = KIND,
            /// The scope whose deadline fired, or 0 for a cancellation.
            scope " scope=": u64 = Filled(SCOPE),
            /// The location of the scope's opening (timeouts only).
            set_at " set-at=": Option<LoggedSite> = Opt(Own),
            /// The task that requested the cancellation. None for a timeout, and if no task did.
            by " by=": Option<u64> = Named(
                &[(None, if kind.eq(&Kind::Cancelled) { "-" } else { "" })],
                Opt(TASK),
            ),
            /// The reason for the interrupt (cancellations only).
            reason " reason=": Text<'a> = Filled(WORD),
        },
        /// The operation's own error: `busy`, `closed`, `refused TEXT`.
        Error(text "!": Text<'a> = ERROR) = "",
    }
}

/// The number of an event. The numbers start at 1 and have no gaps, in the order of the log.
pub type Seq = u64;

/// A location in the user's source: `file:line`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedSite {
    /// The path of the file, as it was passed to the compiler.
    pub file: &'static str,
    /// The number of the line, from 1.
    pub line: u32,
}

/// The position of a task between two runs: `sleep@FILE:LINE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop<'a> {
    /// The trap, with its words joined by `_`, as in `io_c1_read`; or `spawn`, `waker`, `exit`.
    pub trap: Text<'a>,
    /// The location of the trap in the user's source.
    pub at: Option<LoggedSite>,
}

/// A short name for a descriptor, such as `c1`: a letter for its kind, and a number in the order of
/// first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Alias {
    /// The letter: `l` listener, `c` connection, `p` pipe, `e` event, `f` any other.
    pub kind: char,
    /// The number, from 1 for each letter.
    pub number: u32,
}

/// The form of an operation that has ended: its word and its object.
struct Ended;

impl<'a> Form<Op<'a>> for Ended {
    fn put(&self, before: &str, op: &Op<'a>, out: &mut Out) {
        let word = match op {
            Op::Sleep { .. } => "sleep",
            // It does not matter here what the task asked the other threads for.
            Op::Foreign { .. } | Op::Outside { .. } => "outside",
            other => return Own.put(before, other, out),
        };
        out.text(before);
        out.text(word);
    }
}

impl<'a> Pack<Op<'a>> for Ended {
    #[inline(always)]
    fn pack(&self, op: &Op<'a>, out: &mut Packed<'_>) {
        Own.pack(op, out);
    }

    fn take(&self, from: &mut Unpack<'_>) -> Op<'a> {
        Own.take(from)
    }
}

/// A primitive that is built on a queue: `mutex accounts held-by=3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedPrimitive<'a> {
    /// The kind of the primitive, such as `mutex`.
    pub kind: &'static str,
    /// The name of the primitive, or empty if the primitive has no name.
    pub name: Text<'a>,
    /// The number of the primitive's queue, printed in place of a missing name.
    pub queue: u64,
    /// The numbers of the tasks that hold the primitive, in order. Used after `block` and `await`.
    pub held_by: Cow<'a, [u64]>,
}

impl<'a> Form<LoggedPrimitive<'a>> for Own {
    fn put(&self, before: &str, primitive: &LoggedPrimitive<'a>, out: &mut Out) {
        let LoggedPrimitive { kind, name, queue, held_by } = primitive;
        WORD.put(before, &(*kind).into(), out);
        match name.is_empty() {
            // An object shared with threads that no line has named yet.
            true if *queue == 0 => {}
            true => QUEUE.put(" ", queue, out),
            false => WORD.put(" ", name, out),
        }
        for (nth, task) in held_by.iter().take(4).enumerate() {
            TASK.put(if nth == 0 { " held-by=" } else { "," }, task, out);
        }
        out.text(if held_by.len() > 4 { ",.." } else { "" });
    }
}

impl<'a> Pack<LoggedPrimitive<'a>> for Own {
    #[inline(always)]
    fn pack(&self, primitive: &LoggedPrimitive<'a>, out: &mut Packed<'_>) {
        let LoggedPrimitive { kind, name, queue, held_by } = primitive;
        out.word(kind);
        WORD.pack(name, out);
        QUEUE.pack(queue, out);
        // A line shows four, and whether there are more.
        let held_by = &held_by[..held_by.len().min(5)];
        out.number(held_by.len() as u64);
        held_by.iter().for_each(|task| TASK.pack(task, out));
    }

    fn take(&self, from: &mut Unpack<'_>) -> LoggedPrimitive<'a> {
        let (kind, name, queue) = (from.word(), WORD.take(from), QUEUE.take(from));
        let held_by = (0..from.number()).map(|_| TASK.take(from)).collect();
        LoggedPrimitive { kind, name, queue, held_by }
    }
}

impl Form<LoggedSite> for Own {
    fn put(&self, before: &str, site: &LoggedSite, out: &mut Out) {
        WORD.put(before, &site.file.into(), out);
        COUNT.put(":", &site.line, out);
    }
}

impl Pack<LoggedSite> for Own {
    #[inline(always)]
    fn pack(&self, site: &LoggedSite, out: &mut Packed<'_>) {
        out.word(site.file);
        COUNT.pack(&site.line, out);
    }

    fn take(&self, from: &mut Unpack<'_>) -> LoggedSite {
        LoggedSite { file: from.word(), line: COUNT.take(from) }
    }
}

impl<'a> Form<Stop<'a>> for Own {
    fn put(&self, before: &str, Stop { trap, at }: &Stop<'a>, out: &mut Out) {
        STOP.put(before, trap, out);
        Opt(Own).put("@", at, out);
    }
}

impl<'a> Pack<Stop<'a>> for Own {
    #[inline(always)]
    fn pack(&self, Stop { trap, at }: &Stop<'a>, out: &mut Packed<'_>) {
        STOP.pack(trap, out);
        Opt(Own).pack(at, out);
    }

    fn take(&self, from: &mut Unpack<'_>) -> Stop<'a> {
        Stop { trap: STOP.take(from), at: Opt(Own).take(from) }
    }
}

impl Form<Alias> for Own {
    fn put(&self, before: &str, alias: &Alias, out: &mut Out) {
        out.text(before);
        out.0.push(if alias.kind.is_ascii_lowercase() { alias.kind as u8 } else { b'f' });
        COUNT.put("", &alias.number, out);
    }
}

impl Pack<Alias> for Own {
    #[inline(always)]
    fn pack(&self, alias: &Alias, out: &mut Packed<'_>) {
        out.byte(alias.kind as u8);
        COUNT.pack(&alias.number, out);
    }

    fn take(&self, from: &mut Unpack<'_>) -> Alias {
        Alias { kind: from.byte().into(), number: COUNT.take(from) }
    }
}

display!(LoggedSite);
display!(Stop<'a>);
display!(Alias);

/// The version of the trace format.
const VERSION: &str = "v3";

/// Returns the two lines at the head of every trace: the facts of the trace, and the names of the
/// columns. There is no line end after the second line. `clock` is `virtual` or `real`. `tick` is
/// the tick of the table of connection deadlines.
///
/// ```
/// let header = kernel::trace::header("virtual", 7, std::time::Duration::from_millis(300));
/// assert!(header.starts_with("#trace v3 clock=virtual seed=7 tick=0.3s\n"));
/// ```
#[must_use]
pub fn header(clock: &str, seed: u64, tick: Duration) -> String {
    let columns = "# time       turn    seq  id task     verb     detail";
    let (clock, tick) = (word(clock), Span(tick));
    format!("#trace {VERSION} clock={clock} seed={seed} tick={tick}\n{columns}")
}

/// Returns the lines of `--list-traps`: all traps that a task can make.
///
/// ```
/// let traps = kernel::trace::listed();
/// assert!(traps.iter().any(|line| line.contains("sleep")));
/// ```
#[must_use]
pub fn listed() -> Vec<String> {
    include_str!("traps.txt").lines().map(str::to_owned).collect()
}
