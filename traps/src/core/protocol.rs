//! The vocabulary between a task and its kernel: traps, replies and posts.
//!
//! A task *files* a trap or a post: it puts it on a list that the kernel reads after the poll. A
//! *trap* asks the kernel for something and gets one *reply*. A trap *answers* (the kernel replies
//! at once and polls the same task again) or *blocks* (the task leaves the CPU until the reply
//! exists). A *post* informs the kernel and gets no reply, so a `Drop` can make one. Nothing else
//! passes between the two sides. A *wait* is the record of one trap, and its *ticket* is the name
//! of the record. A *handle* is the name of a descriptor. A *scope* is a region of a task, such as
//! a timeout, that can end the waits in it early. The error with which it ends them is an
//! *interrupt*. Both are the second reading.
//!
//! For example, `sleep(1s)` files `Trap::Sleep { span: 1_000_000, until: 1.000000 }`, which blocks.
//! One second later its reply is `Reply::Time(1.000000)`. If the future is dropped before that, it
//! posts `Post::Withdraw` with the ticket of its wait.
//!
//! A reply repeats nothing that is in its trap. For example, `Ready` does not name the descriptor,
//! because the wait keeps its trap. If a task drops a reply unread, the kernel takes back what the
//! reply carried: readiness is remembered, a permit goes to the next waiter, an interrupt is
//! pending again, and the value of a job goes to the handler for orphans.
//!
//! The obvious way is a method of the kernel for each service, called by the task. Then every
//! future borrows the kernel, a service may be called while another one runs, and requests pass the
//! log at many places instead of one. Plain data has none of these problems: this file only
//! defines data.

use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::rc::Rc;

use super::table::{Label, Queue};
use crate::interrupts::interrupt::Interrupt;
use crate::parts::fd::OwnedFd;
use crate::parts::signals::{Refusal, SignalInbox, SignalSet};
use crate::time::Time;

pub use crate::parts::jobs::{EndedJob, LimiterCore, NewJob, Work};
pub use crate::parts::log::{
    DeadlineEvent, Left, Note, PermitEvent, Rescoped, ScopeEvent, ScopePost,
};

pub use super::table::{Descriptor, Direction, HandleId, ScopeId, Site, TaskId, TaskRef, Ticket};
pub use crate::interrupts::source::ScopeKind;

/// A request of a task to its kernel.
///
/// A trap **answers** (the same task is polled again at once) or **blocks** (the task parks until
/// the reply exists). Any blocking trap can get the reply [`Reply::Interrupt`]. So can
/// [`Trap::Check`], which exists for this. To spawn is a post, and no trap ([`Post::Spawn`]).
#[derive(Clone, Debug)]
pub enum Trap {
    /// *Answers* with a reading of the kernel clock.
    Clock,
    /// *Answers* with the interrupt that is pending here, and takes it. An interrupt that a shield
    /// holds back is returned, but stays pending.
    Check,
    /// *Blocks* until every task that is ready now has run once.
    Yield {
        /// Whether the task yields because its budget of operations is spent.
        spent: bool,
    },
    /// *Blocks* until the time `until`. A sleep of zero is a yield: the task runs again in the next
    /// turn.
    Sleep {
        /// The requested duration in microseconds, for the log.
        span: u64,
        /// The end of the sleep.
        until: Time,
    },
    /// *Blocks* until the descriptor looks ready, or until its handle is closed.
    Io {
        /// The handle.
        handle: HandleId,
        /// The direction. A second waiter for the same direction gets [`Reply::Busy`].
        direction: Direction,
    },
    /// *Blocks* until another task has ended.
    Join {
        /// The task.
        task: TaskRef,
        /// The number of `task`, for the log.
        id: TaskId,
    },
    /// *Blocks* at the tail of a queue until a wake or a permit arrives.
    Wait {
        /// The queue.
        queue: Rc<Queue>,
        /// If the reply is dropped unread, its permit goes to the next waiter. If there is none,
        /// the queue stores the permit if this is `true`, and loses it otherwise.
        keep: bool,
    },
    /// *Blocks* until the ticket of the wait is unparked, perhaps by another thread.
    Park {
        /// The object of the wait.
        what: ParkedOn,
        /// Whether something outside the kernel will end the wait. If so, a virtual clock stands
        /// still until then.
        external: bool,
    },
}

impl Trap {
    /// Returns the word for the trap in the log, such as `sleep`. A sleep of no time is a yield.
    #[inline]
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Trap::Clock => "clock",
            Trap::Check => "check_cancellation",
            Trap::Yield { .. } | Trap::Sleep { span: 0, .. } => "yield",
            Trap::Sleep { .. } => "sleep",
            Trap::Io { .. } => "io",
            Trap::Join { .. } => "join",
            Trap::Wait { queue, .. } => match queue.label.get() {
                Label::Signal => "signal",
                Label::Queue => queue.primitive.get().map_or("wait", |primitive| primitive.kind),
            },
            Trap::Park { what, .. } => match what {
                ParkedOn::Job(_) => "offload",
                ParkedOn::Foreign => "foreign",
                ParkedOn::Outside(_) => "outside",
                ParkedOn::Universal(act, _) => act.word(),
            },
        }
    }
}

/// The object for which a parked task waits, in the words of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkedOn {
    /// A foreign future: a future that waits on a waker alone and makes no traps.
    Foreign,
    /// An action that any thread can take, in one word for the log.
    Outside(&'static str),
    /// An operation on an object shared with threads, and the number of the object in this process.
    Universal(Act, u32),
    /// The job with this number.
    Job(u64),
}

/// An operation of a task on an object shared with threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Puts an item.
    Put,
    /// Gets an item.
    Get,
    /// Waits for an event.
    Event,
}

impl Act {
    /// Returns the word of the log for the operation.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Act::Put => "queue_put",
            Act::Get => "queue_get",
            Act::Event => "event_wait",
        }
    }
}

/// The result of a wait. It is stored in the record of the wait until it is read.
#[derive(Debug)]
pub enum Reply {
    /// The trap is done, and has no result.
    Done,
    /// A reading of the clock.
    Time(Time),
    /// The descriptor looks ready. The flag tells whether an event reported urgent data. If the
    /// task never reads this reply, the readiness is remembered.
    Ready(bool),
    /// A wake or a permit of the queue. If the task never reads this reply, the next waiter gets
    /// it.
    Permit,
    /// The interrupt that ended the wait. The trap has had no effect. If the task never reads this
    /// reply, the interrupt is pending again.
    Interrupt(Interrupt),
    /// The interrupt that a shield holds back.
    Held(Interrupt),
    /// The job has ended. If the task never reads this reply, the value of the job is an orphan.
    Job(Box<EndedJob>),
    /// Another task already waits for this direction of this descriptor.
    Busy,
    /// The handle was closed.
    Closed,
    /// The machine below refused the descriptor.
    Refused(io::Error),
}

/// A message of a task to its kernel that gets no reply. A `Drop` can make it.
pub enum Post {
    /// Undoes the wait of a dropped future, or takes back the content of its unread reply.
    Withdraw(Ticket),
    /// Adds a new task at the end of the ready queue. A post, because nothing is waited for. The
    /// log and the counters show it as a trap that answers.
    Spawn(NewTask),
    /// Cancels a task.
    Cancel {
        /// The task.
        task: TaskRef,
        /// The reason.
        reason: &'static str,
        /// The rank of the cancellation among all sources of interrupts.
        order: u64,
    },
    /// Drops the future of the task, because its grace period is over.
    Drop(TaskRef),
    /// Wakes at most this number of the queue's waiters, from the head.
    Wake(Rc<Queue>, u64),
    /// Gives a permit to the first waiter of the queue. If no task waits and the flag is set, the
    /// queue keeps the permit.
    Permit(Rc<Queue>, bool),
    /// The task's waker was called on the kernel's own thread.
    Woken(TaskRef),
    /// The task read this interrupt but did not act on it. Makes it pending again.
    Repend(Interrupt),
    /// Makes the interrupt of `source` pending at `place`, for traps that are filed after this post
    /// (second reading). Posted when a timeout has closed inside a deadline that has fired.
    RependNow {
        /// The scope that has fired.
        source: ScopeId,
        /// The scope at which it is pending.
        place: ScopeId,
    },
    /// Ends the wait of this ticket. Posted on the kernel's own thread.
    Unpark(Ticket),
    /// Logs that a scope was opened or closed. Posted only while the log is on.
    Scope(Box<ScopePost>),
    /// Adds a handle: a descriptor that tasks will wait for under this name.
    Register {
        /// The name of the handle.
        handle: HandleId,
        /// The descriptor.
        descriptor: Descriptor,
        /// The first letter of the handle's alias in the log.
        kind: char,
    },
    /// Closes a handle. Its waiters end with [`Reply::Closed`]. A `Release` of the handle follows.
    Close(HandleId),
    /// Removes a dropped handle. Its waiters end with [`Reply::Closed`].
    Release {
        /// The handle.
        handle: HandleId,
        /// The descriptor itself, which is closed when the kernel no longer needs it.
        owner: Option<OwnedFd>,
        /// Whether closing `owner` also removes it from epoll. It does if no duplicate is open.
        sole: bool,
    },
    /// Informs a service above the core.
    Service(ServicePost),
    /// Writes a note into the log. Most notes are posted only while it is on.
    Note(Note),
}

/// A post for a service of the kernel.
pub enum ServicePost {
    /// Starts a job on a thread. The caller is parked under the job's ticket.
    Submit(Box<NewJob>),
    /// Abandons the job with this number, because its caller no longer waits.
    Abandon(u64),
    /// Hands over a job that has ended and whose value was not read.
    Orphan(Box<EndedJob>),
    /// Makes the machine report the signals that a wait in an inbox wants.
    Watch {
        /// The inbox.
        inbox: Rc<SignalInbox>,
        /// The signals.
        wanted: SignalSet,
        /// Whether the inbox is that of a stream, which sees every signal. Otherwise it is the
        /// kernel's own.
        is_stream: bool,
        /// The place for the error, if the system refuses a signal.
        refusal: Refusal,
    },
}

/// A new task. The task that posts it is its parent.
pub struct NewTask {
    /// The task, whose record at the gate has its number and the call site of the spawn.
    pub task: TaskRef,
    /// The name of the task.
    pub name: Cow<'static, str>,
    /// The body of the task.
    pub body: Pin<Box<dyn Body>>,
}

/// A task's future, and the cell that passes its output to the handle.
pub trait Body: Future<Output = ()> {
    /// Fills the cell, if there is a handle: with the output, or with the reason why there is none.
    fn end(self: Pin<&mut Self>, how: End<'_>);
}

/// The way in which a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End<'a> {
    /// The task ended with its output.
    Output,
    /// The task panicked, with this message.
    Panicked(&'a str),
    /// The future of the task was dropped before its end.
    Dropped,
}
