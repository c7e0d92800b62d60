//! The vocabulary between a task and its kernel: requests, answers, posts, and the names in them.
//!
//! Plain data: nothing here files, answers or decides anything. Requests and answers are `Copy`.
//! The values that they own travel beside them, as [`Owned`].

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

/// Names a task of this thread: its place in its kernel's table, and a generation. No two tasks of
/// one thread have the same generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskRef {
    /// Its place in the task table.
    pub index: u32,
    /// Distinguishes it from earlier tasks in that place.
    pub generation: u32,
}

/// Names an owned descriptor, as [`TaskRef`] names a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandleId {
    /// Its place in the table of registrations.
    pub index: u32,
    /// Distinguishes it from earlier handles in that place.
    pub generation: u32,
}

/// Names a scope. The root scope of a task has the index [`ROOT`] and the task's generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopeId {
    /// Its place in the scope table.
    pub index: u32,
    /// Scopes are numbered from 1 in the order of their opening; the log shows the number as `s1`.
    pub number: u64,
}

/// The index of every task's root scope.
pub const ROOT: u32 = u32::MAX;

/// Names a parked wait: the place of its task, and the serial number of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The place of the task in the task table.
    pub task: u32,
    /// The serial number of the request, unique on this thread for 2^32 requests.
    pub serial: NonZeroU32,
}

/// What a task asks of its kernel.
///
/// A request **answers** (the same task is polled again at once) or **blocks** (the task parks
/// until the answer exists). A blocking request can be answered with [`Owned::Interrupt`], and so
/// can [`Request::CheckInterrupt`], whose purpose is that.
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
    /// *Answers* with the interrupt that was pending here, or that there was none.
    CheckInterrupt,
    /// *Answers* with the interrupt that is pending or held back here, and leaves it there.
    HeldInterrupt,
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
        /// The direction. A second waiter for the same one gets [`Answer::Busy`].
        direction: Direction,
    },
    /// *Blocks* until the task has ended; *answers* if it has ended already.
    Join {
        /// The task.
        task: TaskRef,
        /// The number of the task.
        id: TaskId,
        /// Whether to take its output.
        take: bool,
    },
    /// *Blocks* at the tail of a queue until there is a wake or a permit. Owns the queue.
    Wait {
        /// Whether a permit that is not read is kept when there is no other waiter.
        keep: bool,
    },
    /// *Answers* with the number of waiters that were made ready, at most `n`. Owns the queue.
    Wake {
        /// How many, from the head of the queue.
        n: u64,
    },
    /// *Blocks* until the job has run on a worker thread. Owns the job.
    Offload,
    /// *Blocks* until one of the signals arrives.
    Signal(SignalSet),
    /// *Blocks* until one of the stream's signals arrives; *answers* if one has arrived already.
    /// Owns the stream.
    NextSignal,
    /// *Blocks* until interrupted. It is used beside a wait on a foreign waker.
    Foreign {
        /// Whether something outside the kernel will wake it (a virtual clock waits for that).
        external: bool,
    },
    /// *Blocks* until its ticket is woken from outside the task, perhaps by another thread.
    Outside {
        /// What the wait is for, in one word for the log.
        what: &'static str,
        /// Whether something outside the kernel will wake it (a virtual clock waits for that).
        external: bool,
    },
}

impl Request {
    /// Whether this request can block. (A few of them answer if the result exists already.)
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
    /// Done, with no result.
    Done,
    /// A reading of the clock.
    Time(Time),
    /// The time of day.
    Wall(SystemTime),
    /// The number of the task that asked.
    Id(TaskId),
    /// A count.
    Count(u64),
    /// A signal arrived.
    Signal(Signal),
    /// A joined task has ended.
    Ended(Ended),
    /// Another task already waits for this direction of this descriptor.
    Busy,
    /// The handle was closed.
    Closed,
    /// The answer owns a value: see [`Owned`].
    Owned,
}

/// How a joined task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It has an output, which this join does not ask for.
    Output,
    /// Its future was dropped before its end.
    Dropped,
    /// An earlier join took its output, or the task no longer exists.
    Taken,
}

/// The values that requests and answers own, beside their plain words.
pub enum Owned {
    /// The body of a joined task, with its output inside.
    Body(Pin<Box<dyn Body>>),
    /// The queue of [`Request::Wait`] and [`Request::Wake`].
    Queue(Rc<QueueCore>),
    /// Of [`Request::Offload`]: the job, and the limiter whose limit also applies to it.
    Offload(Box<dyn Work>, Option<Rc<LimiterCore>>),
    /// The stream of [`Request::NextSignal`].
    Stream(Rc<SignalLine>),
    /// The interrupt that ended the wait; nothing was done.
    Interrupt(Interrupt),
    /// The machine below refused the descriptor.
    Refused(io::Error),
    /// The nearest deadline in force, if there is one.
    InForce(Option<InForce>),
    /// The interrupt that is pending or held back, if there is one.
    Held(Option<Interrupt>),
    /// The joined task panicked, with this message.
    Panicked(String),
    /// A job that came back from its thread.
    Job {
        /// The number of the job.
        job: u64,
        /// The task that asked for it.
        task: TaskId,
        /// The job, with its value.
        work: Box<dyn Work>,
    },
}

/// The nearest deadline in force, and the scope that set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The point in time.
    pub deadline: Time,
    /// The number of the scope, as the log shows it.
    pub scope: u64,
    /// Where that scope was opened; `None` for a connection deadline, which is armed in many
    /// places.
    pub set_at: Option<Site>,
}

/// What a task has filed at the gate.
pub enum Filed {
    /// A request, which gets an answer.
    Request(Asked),
    /// A post, which gets none.
    Post(Post),
}

/// A filed request.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The serial number of the request.
    pub serial: NonZeroU32,
    /// The index of the scope in which it was filed.
    pub scope: u32,
    /// The request itself.
    pub request: Request,
    /// The task that filed it.
    pub site: Site,
}

/// The body of a task: its future, then its output, in one allocation.
pub trait Body {
    /// Polls the future, and stores its output when it is ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()>;
    /// Moves the output into `slot`, an `Option` of the output's type.
    fn take(self: Pin<&mut Self>, slot: &mut dyn Any);
    /// Drops the future or the output. The name and the site stay.
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

/// What a handle refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// A descriptor of the operating system, in non-blocking mode.
    Real(RawFd),
    /// A descriptor that a simulated machine makes ready by script.
    Scripted(u32),
}
