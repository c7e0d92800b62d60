//! The vocabulary between a task and its kernel: traps, replies and posts.
//!
//! Plain data: nothing here files, answers or decides anything.

use std::any::Any;
use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::interrupt::{Interrupt, Kind};
use super::limiter::LimiterCore;
pub use super::names::{Descriptor, Direction, HandleId, ScopeId, Site, TaskId, TaskRef, Ticket};
use super::queue::Queue;
use super::signals::SignalLine;
use crate::time::Time;

/// What a task asks of its kernel.
///
/// A trap **answers** (the same task is polled again at once) or **blocks** (the task parks until
/// the reply exists). A trap that blocks can be answered with [`Reply::Interrupt`], and so can
/// [`Trap::Check`], whose purpose is that.
#[derive(Debug)]
pub enum Trap {
    /// *Answers* with a reading of the kernel clock.
    Clock,
    /// *Answers* with the interrupt that was pending here, and takes it; or with the one that a
    /// shield holds back, which stays there.
    Check,
    /// *Blocks* until every task that is ready now has run once.
    Yield {
        /// Whether the task gave way because its budget of operations was spent.
        spent: bool,
    },
    /// *Blocks* until the time `until`. A span of zero costs one turn, even under a deadline.
    Sleep {
        /// As asked for, in microseconds; for the log.
        span: u64,
        /// When the sleep ends.
        until: Time,
    },
    /// *Blocks* until the descriptor looks ready, or until its handle is closed.
    Io {
        /// The handle.
        handle: HandleId,
        /// The direction. A second waiter for the same one gets [`Reply::Busy`].
        direction: Direction,
    },
    /// *Blocks* at the tail of a queue until there is a wake or a permit.
    Wait {
        /// The queue.
        queue: Rc<Queue>,
        /// Whether a permit that is not read is kept when there is no other waiter.
        keep: bool,
    },
    /// *Blocks* until its ticket is unparked, perhaps by another thread.
    Park {
        /// What the wait is for.
        what: Parked,
        /// Whether something outside the kernel will end it (a virtual clock waits for that).
        external: bool,
    },
}

/// What a parked task waits for, in the words of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parked {
    /// A future that knows nothing of traps, beside it.
    Foreign,
    /// Something that any thread may do, in one word.
    Outside(&'static str),
    /// Something shared with threads, by its number in this process.
    Universal(Act, u32),
    /// The job of that number.
    Job(u64),
}

/// What a task does with something that is shared with threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It puts an item.
    Put,
    /// It gets an item.
    Get,
    /// It waits for an event.
    Event,
}

impl Act {
    /// What the log calls it.
    #[must_use]
    pub fn word(self) -> &'static str {
        ["queue_put", "queue_get", "event_wait"][self as usize]
    }
}

/// What a wait came to. It lies in the record of the wait until it is read.
#[derive(Debug)]
pub enum Reply {
    /// Done, with no result.
    Done,
    /// A reading of the clock.
    Time(Time),
    /// The descriptor looks ready. Unread, that is remembered.
    Ready(HandleId, Direction),
    /// A wake or a permit of a queue; whether it is kept. Unread, it is passed on.
    Permit(Rc<Queue>, bool),
    /// The interrupt that ended the wait; nothing was done. Unread, it is pending again.
    Interrupt(Interrupt),
    /// The interrupt that a shield holds back.
    Held(Interrupt),
    /// The job has ended. Unread, its value is an orphan.
    Job(Box<EndedJob>),
    /// Another task already waits for this direction of this descriptor.
    Busy,
    /// The handle was closed.
    Closed,
    /// The machine below refused the descriptor.
    Refused(io::Error),
}

/// What a task says without an answer. It may be said in a `Drop`.
pub enum Post {
    /// The future of this wait is gone: undo it, or give back what it was handed.
    Withdraw(Ticket),
    /// A task was made. It goes to the end of the ready queue.
    Spawn(NewTask),
    /// The task is to be cancelled, for this reason.
    Cancel(TaskRef, &'static str),
    /// The future of the task is to be dropped, because its grace period is over.
    Drop(TaskRef),
    /// Wakes at most `n` waiters, from the head.
    Wake(Rc<Queue>, u64),
    /// Wakes one waiter. If there is none, keeps a permit if the flag says so.
    Permit(Rc<Queue>, bool),
    /// The task's waker was called on the kernel's own thread.
    Woken(TaskRef),
    /// A parked ticket was unparked on the kernel's own thread.
    Unpark(Ticket),
    /// The deadline of this scope is to be in the timer heap.
    Set(ScopeId),
    /// A scope was opened; for the log, and only while it is on.
    Opened(Box<OpenedScope>),
    /// A scope is gone: its timer is to be cancelled.
    Unset(ScopeId, u32),
    /// A scope is gone; for the log, and only while it is on.
    Closed(Box<ClosedScope>),
    /// A new handle: a descriptor that tasks will wait for under this name.
    Register {
        /// The name.
        handle: HandleId,
        /// What the handle refers to.
        descriptor: Descriptor,
        /// The letter of its alias in the log.
        kind: char,
    },
    /// A handle is closed: its waiters end with [`Reply::Closed`]. A `Release` of it follows.
    Close(HandleId),
    /// A handle was dropped: its waiters end with [`Reply::Closed`].
    Release {
        /// The handle.
        handle: HandleId,
        /// The descriptor itself, which is closed when the kernel no longer needs it.
        owner: Option<OwnedFd>,
        /// Whether closing `owner` ends its registration, because no duplicate of it exists.
        sole: bool,
    },
    /// For a service above the core.
    Service(ServicePost),
    /// For the log, and most of them only while it is on.
    Note(Note),
}

/// A post for a service of the kernel.
pub enum ServicePost {
    /// A job for a thread; its caller is parked under the job's ticket.
    Submit(Box<NewJob>),
    /// The wait for that job has ended without it.
    Abandon(u64),
    /// A job ended, and nobody has read its value.
    Orphan(Box<EndedJob>),
    /// The signals of this line are to be reported to it; the flag says whether each goes to
    /// every line that wants it, or to the kernel's own line.
    Watch(Rc<SignalLine>, bool),
}

/// For the log.
pub enum Note {
    /// Something that a user should know.
    Warning(Cow<'static, str>),
    /// A limit was hit.
    Cap(Cow<'static, str>),
    /// What a task says of itself.
    Said(Cow<'static, str>),
    /// A span of a task begins (true) or ends.
    Span(bool, Cow<'static, str>),
    /// Bytes were read or written.
    Moved(HandleId, Direction, usize),
    /// A listener has accepted a connection from a peer.
    Accepted(HandleId, HandleId, Option<Box<SocketAddr>>),
    /// A connection deadline was made, armed or disarmed: its number.
    Deadline(u32, DeadlineEvent, Site),
    /// The output of that task was taken.
    Joined(TaskId),
    /// An interrupt of that task was not read: it is pending again.
    PutBack(TaskRef, Interrupt),
}

/// What happened to a connection deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineEvent {
    /// It was made.
    Made,
    /// It was armed for that phase, and will fire at this time.
    Armed(Time, &'static str),
    /// It was disarmed.
    Disarmed,
}

/// A new task.
pub struct NewTask {
    /// Its name: the scope around all that it does.
    pub root: TaskRef,
    /// The number of the task.
    pub id: TaskId,
    /// Its future.
    pub body: Pin<Box<dyn Body>>,
    /// The task that spawned it.
    pub parent: TaskRef,
}

/// The body of a task: its future, and where its output goes.
pub trait Body {
    /// Polls the future.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()>;
    /// Drops the future or the output. The name and the site stay.
    fn clear(self: Pin<&mut Self>);
    /// Tells whoever holds the task's handle how it ended. Gives the queue of those who wait for
    /// the end.
    fn end(self: Pin<&mut Self>, how: End<'_>) -> Option<Rc<Queue>>;
    /// The task's name.
    fn name(&self) -> &str;
    /// Where it was spawned.
    fn site(&self) -> Site;
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End<'a> {
    /// With its output.
    Output,
    /// By a panic, with this message.
    Panicked(&'a str),
    /// Its future was dropped before its end.
    Dropped,
}

/// A job for a worker thread: it runs once, and what comes of it lies where its caller looks.
pub trait Work: Send + Sync {
    /// Runs the job; catches its panic.
    fn run(&self);
    /// Takes what came of it, for the hook of orphans; `None` if there is nothing.
    fn take(&self) -> Option<Result<Box<dyn Any + Send>, String>>;
}

/// A job that a task asks for.
pub struct NewJob {
    /// Its number.
    pub job: u64,
    /// The wait of its caller.
    pub ticket: Ticket,
    /// The caller.
    pub task: TaskRef,
    /// Where it was asked for.
    pub site: Site,
    /// The job.
    pub work: Arc<dyn Work>,
    /// The limiter whose limit also applies to it.
    pub limiter: Option<Rc<LimiterCore>>,
    /// The deadline in force where it was asked for.
    pub until: Time,
}

/// A job that has ended.
pub struct EndedJob {
    /// Its number.
    pub job: u64,
    /// The task that asked for it.
    pub task: TaskId,
    /// Where it asked.
    pub site: Site,
    /// The job, with its value.
    pub work: Arc<dyn Work>,
}

impl std::fmt::Debug for EndedJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EndedJob({})", self.job)
    }
}

/// A scope that was opened, for the log.
pub struct OpenedScope {
    /// Its name. It may be gone already.
    pub scope: ScopeId,
    /// The task that it is in.
    pub task: TaskRef,
    /// Its number.
    pub number: u64,
    /// Its kind.
    pub kind: ScopeKind,
    /// Its deadline.
    pub deadline: Time,
    /// The clock when it was opened; [`Time::ZERO`] if it was not read.
    pub now: Time,
    /// Where it was opened.
    pub site: Site,
}

/// A scope that is gone, for the log.
pub struct ClosedScope {
    /// The task that it was in.
    pub task: TaskRef,
    /// Its number.
    pub number: u64,
    /// Its kind.
    pub kind: ScopeKind,
    /// Its deadline.
    pub deadline: Time,
    /// The result that left it.
    pub left: Left,
}

/// The kind of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeKind {
    /// Around all that a task does. It fires when the task is cancelled.
    Task,
    /// A connection deadline that guards a whole task: its slot in the deadline table.
    Deadline(u32),
    /// A timeout, with or without a deadline.
    Timeout,
    /// A timeout that wins against a value of the same turn. If it has a slot, its deadline is the
    /// one in that slot of the deadline table.
    Guard {
        /// The slot in the deadline table.
        slot: Option<u32>,
        /// The number of the connection deadline, as the log shows it.
        number: u32,
    },
    /// One branch of a combinator.
    Branch,
    /// Holds back interrupts from scopes outside it.
    Shield,
}

impl ScopeKind {
    /// Whether it relabels the interrupts that leave it.
    #[must_use]
    pub fn is_timeout(self) -> bool {
        matches!(self, ScopeKind::Timeout | ScopeKind::Guard { .. })
    }
}

/// The result that left a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// A value, and the clock at that time; [`Time::ZERO`] if it was not read.
    Value(Time),
    /// An interrupt.
    Interrupt {
        /// The kind that it has outside the scope.
        kind: Kind,
        /// The number of the scope that fired, if one did.
        scope: Option<u64>,
        /// The task that cancelled.
        by: Option<TaskId>,
    },
    /// Another error, or the scope was dropped before its end.
    Other,
}
