//! The vocabulary between a task and its kernel: requests, answers, posts, and what they name.
//!
//! Plain data: nothing here files, answers or decides anything. Requests and answers are `Copy`;
//! what they own travels beside them, as [`Owned`].

mod post;

use std::any::Any;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::RawFd;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use crate::interrupt::Interrupt;
pub use crate::signal::SignalLine;
use crate::signal::{Signal, SignalSet};
use crate::sync::QueueCore;
use crate::task::TaskId;
use crate::threads::{LimiterCore, Work};
use crate::time::Time;
pub use post::{DeadlineEvent, DeadlineNote, Left, NewTask, Note, Opening, Post, ScopeKind};

/// Where in the user's source a trap was made.
pub type Site = &'static Location<'static>;

/// Names a task of this thread: its place in its kernel's table, and which of the tasks that ever
/// lay there. No two tasks of one thread have the same generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskRef {
    /// Place in the task table.
    pub index: u32,
    /// Tells it from earlier tasks in that place.
    pub generation: u32,
}

/// Names an owned descriptor, as [`TaskRef`] names a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandleId {
    /// Place in the table of registrations.
    pub index: u32,
    /// Tells it from earlier handles in that place.
    pub generation: u32,
}

/// Names a scope. The root scope of a task has the index [`ROOT`] and the task's generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopeId {
    /// Place in the scope table.
    pub index: u32,
    /// Scopes are numbered in the order of their opening, from 1; the log shows it as `s1`.
    pub number: u64,
}

/// The index of every task's root scope.
pub const ROOT: u32 = u32::MAX;

/// Names a parked wait: the place of its task, and the serial number of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Place of the task in the task table.
    pub task: u32,
    /// Serial number of the request, of all of this thread.
    pub serial: NonZeroU32,
}

/// What a task asks of its kernel.
///
/// A request **answers** (the same task is polled on at once) or **blocks** (the task parks until
/// the answer exists). A blocking request can be answered with [`Owned::Interrupt`]; so can
/// [`Request::CheckInterrupt`], which asks for just that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request {
    /// *Answers* with a reading of the kernel clock.
    Clock,
    /// *Answers* with the time of day.
    WallClock,
    /// *Answers* with the number of the task.
    CurrentTask,
    /// *Answers* with the nearest deadline in force, if any.
    Deadline,
    /// *Answers* that no interrupt is pending here, or with the one that was.
    CheckInterrupt,
    /// *Answers* with the interrupt that is pending or held back here, and leaves it there.
    HeldInterrupt,
    /// *Blocks* until every task that is ready now has run once.
    Yield {
        /// Whether the budget of operations forced it.
        spent: bool,
    },
    /// *Blocks* until `until`. A span of zero costs one turn and beats a deadline.
    Sleep {
        /// As asked for, in microseconds; shown in the log.
        span: u64,
        /// When it ends.
        until: Time,
    },
    /// *Blocks* until the descriptor looks ready, or until its handle is closed.
    Io {
        /// Which handle.
        handle: HandleId,
        /// The one direction waited for; a second waiter gets [`Answer::Busy`].
        direction: Direction,
    },
    /// *Blocks* until the task has ended; *answers* if it has.
    Join {
        /// Which task.
        task: TaskRef,
        /// Its number.
        id: TaskId,
        /// Whether to take its output.
        take: bool,
    },
    /// *Blocks* at the tail of a queue until a wake or a permit comes. Owns the queue.
    Wait {
        /// Whether what it was handed is kept if nobody reads it and nobody else waits.
        keep: bool,
    },
    /// *Answers* with how many waiters were made ready, `n` at most. Owns the queue.
    Wake {
        /// From the head of the queue.
        n: u64,
    },
    /// *Blocks* until the job has run on a worker thread. Owns the job.
    Offload,
    /// *Blocks* until one of the signals arrives.
    Signal(SignalSet),
    /// *Blocks* until one of the stream's signals arrives; *answers* if one is kept. Owns the
    /// stream.
    NextSignal,
    /// *Blocks* until interrupted: it stands beside a wait on a foreign waker.
    Foreign {
        /// Whether something outside the kernel will wake it (a virtual clock waits for that).
        external: bool,
    },
    /// *Blocks* until its ticket is woken from outside the task, perhaps by another thread.
    Outside {
        /// One word for the log.
        what: &'static str,
        /// Whether something outside the kernel will wake it (a virtual clock waits for that).
        external: bool,
    },
}

impl Request {
    /// Whether the contract of this request is to block. (A few answer if the result exists.)
    #[must_use]
    pub fn blocks(&self) -> bool {
        match self {
            Request::Yield { .. }
            | Request::Sleep { .. }
            | Request::Io { .. }
            | Request::Join { .. }
            | Request::Wait { .. }
            | Request::Offload
            | Request::Signal(_)
            | Request::NextSignal
            | Request::Foreign { .. }
            | Request::Outside { .. } => true,
            Request::Clock
            | Request::WallClock
            | Request::CurrentTask
            | Request::Deadline
            | Request::CheckInterrupt
            | Request::HeldInterrupt
            | Request::Wake { .. } => false,
        }
    }
}

/// What a kernel gives back for a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// Done; nothing to add.
    Done,
    /// A reading of the clock.
    Time(Time),
    /// The time of day.
    Wall(SystemTime),
    /// The number of the task that asked.
    Id(TaskId),
    /// How many.
    Count(u64),
    /// A signal arrived.
    Signal(Signal),
    /// A joined task has ended.
    Ended(Ended),
    /// Another task already waits for this direction of this descriptor.
    Busy,
    /// The handle was closed.
    Closed,
    /// The answer owns something: see [`Owned`].
    Owned,
}

/// How a joined task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With an output, which this join does not ask for.
    Output,
    /// Its future was dropped before its end.
    Dropped,
    /// An earlier join took its output, or there is no such task any more.
    Taken,
}

/// What a request or an answer owns, beside its plain words.
pub enum Owned {
    /// The body of a joined task, with its output.
    Body(Pin<Box<dyn Body>>),
    /// Of [`Request::Wait`] and [`Request::Wake`].
    Queue(Rc<QueueCore>),
    /// Of [`Request::Offload`]: the job, and the class whose limit holds for it too.
    Offload(Box<dyn Work>, Option<Rc<LimiterCore>>),
    /// Of [`Request::NextSignal`].
    Stream(Rc<SignalLine>),
    /// The wait ended early; nothing was done.
    Interrupt(Interrupt),
    /// The machine below refused the descriptor.
    Refused(io::Error),
    /// The nearest deadline in force, if there is one.
    InForce(Option<InForce>),
    /// What is pending or held back, if anything.
    Held(Option<Interrupt>),
    /// The joined task panicked, with this message.
    Panicked(String),
    /// A job came back from its thread.
    Job {
        /// Its number.
        job: u64,
        /// Who asked for it.
        task: TaskId,
        /// With its value.
        work: Box<dyn Work>,
    },
}

/// The nearest deadline in force somewhere, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Absolute.
    pub deadline: Time,
    /// The number of the scope that has it, as the log shows it.
    pub scope: u64,
    /// Where that scope was opened; `None` for a connection deadline, which is armed in many
    /// places.
    pub set_at: Option<Site>,
}

/// What a task has filed at the gate.
pub enum Filed {
    /// To be answered.
    Request(Asked),
    /// To be heeded.
    Post(Post),
}

/// A filed request.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Its serial number.
    pub serial: NonZeroU32,
    /// The index of the scope in which it was filed.
    pub scope: u32,
    /// What is asked.
    pub request: Request,
    /// By whom.
    pub site: Site,
}

/// The body of a task: its future, then its output, in one allocation.
pub trait Body {
    /// Polls the future; keeps its output.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()>;
    /// Moves the output into `slot`, an `Option` of the output's type.
    fn take(self: Pin<&mut Self>, slot: &mut dyn Any);
    /// Drops the future or the output; the name and the place stay.
    fn clear(self: Pin<&mut Self>);
    /// The task's name.
    fn name(&self) -> &str;
    /// Where it was spawned.
    fn site(&self) -> Site;
}

/// One direction of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Bytes to read, a connection to accept, or the end of the stream.
    Read,
    /// Room to write.
    Write,
}

/// What a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// A descriptor of the operating system, in non-blocking mode.
    Real(RawFd),
    /// One that a simulated machine makes ready by script.
    Scripted(u32),
}
