//! Posts: what a task tells its kernel without waiting for an answer.

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

/// What a task tells its kernel without waiting for an answer; safe to make in a `Drop`.
pub enum Post {
    /// The future of a parked ticket is gone.
    Withdraw(Ticket),
    /// The future of a parked ticket is to be woken by this waker, not by the task's own.
    SetWaker(Ticket, Waker),
    /// An interrupt was delivered but its future was dropped unread: it is pending again.
    Unread(TaskRef, Interrupt),
    /// A scope begins.
    OpenScope(Opening),
    /// A scope of that task ends.
    CloseScope(TaskRef, ScopeId, Left),
    /// A connection deadline was made or used; told only while somebody listens.
    Deadline(DeadlineNote),
    /// An interrupt of a connection deadline that guards no more is for nobody.
    Disarm {
        /// The task that made the deadline.
        task: TaskRef,
        /// Its slot in the deadline table.
        slot: u32,
    },
    /// A descriptor will be waited for under this name.
    Register {
        /// The name, given out by the gate.
        handle: HandleId,
        /// What it stands for.
        descriptor: Descriptor,
        /// The letter of its alias in the log.
        kind: char,
    },
    /// A descriptor looked ready but the future was dropped unread: it is remembered.
    Remember(HandleId, Direction),
    /// A handle is closed: its waiters end with [`Answer::Closed`](super::Answer::Closed). A
    /// `Release` of it follows.
    Close(HandleId),
    /// A handle is gone: its waiters end with [`Answer::Closed`](super::Answer::Closed).
    Release {
        /// Which handle.
        handle: HandleId,
        /// The descriptor itself, closed when the kernel has let go of it.
        owner: Option<OwnedFd>,
        /// Whether closing `owner` ends its registration (no duplicate of it exists).
        sole: bool,
    },
    /// So many bytes were read or written: for the log, while somebody listens.
    Moved {
        /// Of which handle.
        handle: HandleId,
        /// Read or written.
        direction: Direction,
        /// How many.
        bytes: usize,
    },
    /// A listener accepted a connection: for the log, while somebody listens.
    Accepted {
        /// The listener.
        handle: HandleId,
        /// What it accepted.
        connection: HandleId,
        /// Who connected, if that is known.
        peer: Option<Box<SocketAddr>>,
    },
    /// A signal arrived but its future was dropped unread: it is for the next who waits.
    Keep(Signal),
    /// A job ended but its future was dropped unread: it is an orphan.
    Orphan {
        /// Its number.
        job: u64,
        /// Who asked for it.
        task: TaskId,
        /// Where.
        site: Site,
        /// With its value.
        work: Box<dyn Work>,
    },
    /// A task is made: the last in the ready queue.
    Spawn(NewTask),
    /// Nobody will join the task.
    Detach(TaskRef),
    /// The task is to be cancelled, for that reason.
    Cancel(TaskRef, &'static str),
    /// The task's future is to be dropped: its grace is over.
    Drop(TaskRef),
    /// The task's waker was called on the kernel's own thread.
    Woken(TaskRef),
    /// The ticket of a [`Request::Outside`](super::Request::Outside) was woken on the
    /// kernel's own thread.
    WakeTicket(Ticket),
    /// Wake one waiter; if nobody waits, keep a permit if `keep` says so.
    Permit {
        /// Where.
        queue: Rc<QueueCore>,
        /// Whether it is kept if nobody waits.
        keep: bool,
    },
    /// Wake at most `n` waiters.
    Wake {
        /// Where.
        queue: Rc<QueueCore>,
        /// From the head of the queue.
        n: u64,
    },
    /// The task is to be polled when the shutdown begins.
    Watch(TaskRef),
    /// A line for the log.
    Note(Note),
}

/// A task to be made.
pub struct NewTask {
    /// Its name, given out by the gate.
    pub task: TaskRef,
    /// Its number.
    pub id: TaskId,
    /// What it is made of.
    pub body: Pin<Box<dyn Body>>,
    /// Who spawns it.
    pub parent: TaskRef,
    /// Nobody will join it.
    pub detached: bool,
}

/// A scope that a task has opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Its name, given out by the gate.
    pub scope: ScopeId,
    /// The index of the scope around it.
    pub parent: u32,
    /// What it is for.
    pub kind: ScopeKind,
    /// Its own deadline; [`Time::NEVER`] for none.
    pub deadline: Time,
    /// The clock when it was opened; [`Time::ZERO`] if nobody read it.
    pub now: Time,
    /// Where.
    pub site: Site,
}

/// What a scope is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeKind {
    /// A timeout, perhaps without a deadline.
    Timeout,
    /// A timeout that wins against a value of the same turn. With a slot, its deadline is that of
    /// the deadline table.
    Guard {
        /// In the deadline table.
        slot: Option<u32>,
        /// The number of the connection deadline, as the log shows it.
        number: u32,
    },
    /// One branch of a combinator.
    Branch,
    /// Holds back interrupts from scopes outside it.
    Shield,
}

/// What came out of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// A value, when the clock showed that; [`Time::ZERO`] if nobody read it.
    Value(Time),
    /// An interrupt.
    Interrupt {
        /// As it is named outside the scope.
        kind: Kind,
        /// The number of the scope that fired, if one did.
        scope: Option<u64>,
        /// Who cancelled.
        by: Option<TaskId>,
    },
    /// Something else, or the scope was dropped before its end.
    Other,
}

/// What the log says of a connection deadline.
#[derive(Clone, Copy, Debug)]
pub struct DeadlineNote {
    /// Its number.
    pub number: u32,
    /// What happened.
    pub what: DeadlineEvent,
    /// Where.
    pub site: Site,
}

/// What happens to a connection deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineEvent {
    /// It was made.
    Made,
    /// It was armed until then.
    Armed(Time),
    /// It was disarmed.
    Disarmed,
}
