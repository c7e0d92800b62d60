//! Posts: messages of a task to its kernel that need no answer.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Waker;

use super::{Body, Descriptor, Direction, HandleId, ScopeId, Site, TaskRef, Ticket};
use crate::interrupt::{Interrupt, Kind};
use crate::signal::Signal;
use crate::sync::QueueCore;
use crate::task::TaskId;
use crate::threads::Work;
use crate::time::Time;
pub use crate::verbs::Note;

/// A message of a task to its kernel that needs no answer. It may be posted from a `Drop`.
pub enum Post {
    /// The future of a parked ticket was dropped.
    Withdraw(Ticket),
    /// A parked ticket is to wake this waker, not the waker of the task.
    SetWaker(Ticket, Waker),
    /// An interrupt was delivered but its future was dropped unread: it is pending again.
    Unread(TaskRef, Interrupt),
    /// A scope was opened.
    OpenScope(Opening),
    /// A scope of that task was closed.
    CloseScope(TaskRef, ScopeId, Left),
    /// A connection deadline was made, armed or disarmed; posted only while the log is on.
    Deadline(DeadlineNote),
    /// A connection deadline no longer guards anything, so its pending interrupt is discarded.
    Disarm {
        /// The task that made the deadline.
        task: TaskRef,
        /// Its slot in the deadline table.
        slot: u32,
    },
    /// A new handle: a descriptor that tasks will wait for under this name.
    Register {
        /// The name, chosen by the gate.
        handle: HandleId,
        /// What the handle refers to.
        descriptor: Descriptor,
        /// The letter of its alias in the log.
        kind: char,
    },
    /// A descriptor looked ready but the future was dropped unread: the kernel remembers that it is
    /// ready.
    Remember(HandleId, Direction),
    /// A handle is closed: its waiters end with [`Answer::Closed`](super::Answer::Closed). A
    /// `Release` of it follows.
    Close(HandleId),
    /// A handle was dropped: its waiters end with [`Answer::Closed`](super::Answer::Closed).
    Release {
        /// The handle.
        handle: HandleId,
        /// The descriptor itself, which is closed when the kernel no longer needs it.
        owner: Option<OwnedFd>,
        /// Whether closing `owner` ends its registration, because no duplicate of it exists.
        sole: bool,
    },
    /// Bytes were read or written; for the log, and posted only while it is on.
    Moved {
        /// The handle.
        handle: HandleId,
        /// The direction.
        direction: Direction,
        /// The number of bytes.
        bytes: usize,
    },
    /// A listener accepted a connection; for the log, and posted only while it is on.
    Accepted {
        /// The listener.
        handle: HandleId,
        /// The accepted connection.
        connection: HandleId,
        /// The address of the peer, if it is known.
        peer: Option<Box<SocketAddr>>,
    },
    /// A signal arrived but its future was dropped unread: the next waiter gets it.
    Keep(Signal),
    /// A job ended but its future was dropped unread: its value is an orphan.
    Orphan {
        /// The number of the job.
        job: u64,
        /// The task that asked for it.
        task: TaskId,
        /// Where it asked.
        site: Site,
        /// The job, with its value.
        work: Box<dyn Work>,
    },
    /// A task was made. It goes to the end of the ready queue.
    Spawn(NewTask),
    /// The handle of the task was dropped: no task will join it.
    Detach(TaskRef),
    /// The task is to be cancelled, for this reason.
    Cancel(TaskRef, &'static str),
    /// The future of the task is to be dropped, because its grace period is over.
    Drop(TaskRef),
    /// The task's waker was called on the kernel's own thread.
    Woken(TaskRef),
    /// The ticket of a [`Request::Outside`](super::Request::Outside) was woken on the
    /// kernel's own thread.
    WakeTicket(Ticket),
    /// Wakes one waiter. If there is none, keeps a permit if `keep` says so.
    Permit {
        /// The queue.
        queue: Rc<QueueCore>,
        /// Whether to keep a permit if there is no waiter.
        keep: bool,
    },
    /// Wakes at most `n` waiters.
    Wake {
        /// The queue.
        queue: Rc<QueueCore>,
        /// How many, from the head of the queue.
        n: u64,
    },
    /// The task is to be polled when the shutdown begins.
    Watch(TaskRef),
    /// A line for the log.
    Note(Note),
}

/// A new task.
pub struct NewTask {
    /// The name, chosen by the gate.
    pub task: TaskRef,
    /// The number of the task.
    pub id: TaskId,
    /// The future of the task, and place for its output.
    pub body: Pin<Box<dyn Body>>,
    /// The task that spawned it.
    pub parent: TaskRef,
    /// Whether no task will join it.
    pub detached: bool,
}

/// A scope that a task has opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The name, chosen by the gate.
    pub scope: ScopeId,
    /// The index of the scope around it.
    pub parent: u32,
    /// The kind of scope.
    pub kind: ScopeKind,
    /// Its own deadline; [`Time::NEVER`] for none.
    pub deadline: Time,
    /// The clock when the scope was opened; [`Time::ZERO`] if it was not read.
    pub now: Time,
    /// The place in the source.
    pub site: Site,
}

/// The kind of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeKind {
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

/// An event of a connection deadline, for the log.
#[derive(Clone, Copy, Debug)]
pub struct DeadlineNote {
    /// The number of the deadline.
    pub number: u32,
    /// What happened.
    pub what: DeadlineEvent,
    /// The place in the source.
    pub site: Site,
}

/// What happened to a connection deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineEvent {
    /// It was made.
    Made,
    /// It was armed, and will fire at this time.
    Armed(Time),
    /// It was disarmed.
    Disarmed,
}
