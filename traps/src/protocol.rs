//! The vocabulary between a task and its kernel: requests, posts, answers, and what they name.
//!
//! Plain data: nothing here files, answers or decides anything.

use std::num::NonZeroU64;
use std::os::fd::{OwnedFd, RawFd};
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

pub use crate::answer::{Answer, Ended, Failure, InForce, TrapResult};
pub use crate::body::{Birth, Body};
use crate::interrupt::Interrupt;
pub use crate::queue_core::QueueCore;
pub use crate::scope_terms::{DeadlineName, Left, Limit, Opening, Reading, ScopeKind};
use crate::signal::{Signal, SignalSet};
pub use crate::signals::SignalLine;
use crate::threads::{LimiterCore, Work};
use crate::time::Time;
pub use crate::verbs::Note;

/// Where in the user's source a trap was made.
pub type Site = &'static Location<'static>;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        ///
        /// The index says where a table keeps it, the serial number which one it is, the epoch
        /// whose kernel: a name that outlives its owner matches nothing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            /// Slot in a table.
            pub index: u32,
            /// Number of its kernel, of all in the process.
            pub epoch: u32,
            /// Never used twice.
            pub serial: NonZeroU64,
        }
    )*};
}

names! {
    /// A filed request, from its filing until its result is read.
    Ticket
    /// A scope. The root scope of a task has index [`ROOT`] and the task's number.
    ScopeId
    /// A task.
    TaskRef
    /// An owned descriptor's place in the tables, given out when it is first waited for.
    HandleId
}

/// The index of every task's root scope.
pub const ROOT: u32 = u32::MAX;

/// Set in the index of a ticket that is kept under its task's place: its *home*. The first request
/// of a poll has it, unless another one is still parked there.
pub const HOME: u32 = 1 << 31;

/// What a task asks of its kernel.
///
/// A request **answers** (the same task is polled on at once) or **blocks** (the task parks until
/// the result exists). Every blocking request can end with [`Failure::Interrupt`], and one that
/// answers can, since it asks for just that: [`Request::CheckInterrupt`].
pub enum Request {
    /// *Answers* with a reading of the kernel clock.
    Clock,
    /// *Answers* with the time of day.
    WallClock,
    /// *Answers* with the task's own name.
    CurrentTask,
    /// *Answers* with the nearest deadline in force, if any, and whose it is.
    Deadline,
    /// *Answers* that nothing is pending here, or ends with the interrupt that was.
    CheckInterrupt,
    /// *Answers* with what is pending or held back by a shield here, and leaves it there.
    HeldInterrupt,
    /// *Blocks* until every task that is ready now has run once.
    Yield {
        /// Whether the budget of operations forced it.
        spent: bool,
    },
    /// *Blocks* until `span` has passed.
    Sleep {
        /// From the trap; rounded up to a microsecond. Zero costs one turn and beats a deadline.
        span: Duration,
    },
    /// *Blocks* until the descriptor looks ready, or until its handle is closed.
    Io {
        /// Which handle.
        handle: HandleId,
        /// What it stands for.
        descriptor: Descriptor,
        /// The letter of its alias.
        kind: char,
        /// The one direction waited for; a second waiter of it gets [`Failure::Busy`].
        direction: Direction,
    },
    /// *Answers* with a new scope inside the current one. A timeout opens without: [`Opening`].
    OpenScope {
        /// Its own limit; of a shield, its grace, set when it first holds something back.
        limit: Limit,
        /// What it is for.
        kind: ScopeKind,
    },
    /// *Answers* with a new task at the tail of the ready queue.
    Spawn {
        /// It, boxed.
        body: Pin<Box<dyn Body>>,
    },
    /// *Blocks* until the task has ended; *answers* if it has.
    Join {
        /// Which.
        task: TaskRef,
        /// Whether to take its output.
        take: bool,
    },
    /// *Answers* once the cancellation is delivered or pending.
    Cancel {
        /// Which.
        task: TaskRef,
        /// Shown in the log and in the interrupt.
        reason: &'static str,
    },
    /// *Blocks* at the tail of the queue until a wake or a permit comes.
    Wait {
        /// Where.
        queue: Rc<QueueCore>,
    },
    /// *Answers* with how many waiters were made ready.
    Wake {
        /// Where.
        queue: Rc<QueueCore>,
        /// At most so many, from the head.
        n: u64,
    },
    /// *Blocks* until the job has run on a worker thread.
    Offload {
        /// What is to run there.
        work: Box<dyn Work>,
        /// The class whose limit holds for it too.
        limiter: Option<Rc<LimiterCore>>,
    },
    /// *Blocks* until one of the signals arrives.
    Signal(SignalSet),
    /// *Blocks* until one of the stream's signals arrives; *answers* if one is kept.
    NextSignal(Rc<SignalLine>),
    /// *Blocks* until interrupted: it stands beside a wait on a foreign waker.
    Foreign {
        /// Whether something outside the kernel will wake it (a virtual clock waits for that).
        external: bool,
    },
    /// *Blocks* until its ticket is woken from outside the task: by another thread, or by another
    /// task without a trap.
    Outside {
        /// For the log.
        what: &'static str,
        /// Whether something outside the kernel will wake it (a virtual clock waits for that).
        external: bool,
    },
}

impl Request {
    /// Whether the contract of this request is to block (a few answer when the result exists).
    #[must_use]
    pub fn blocks(&self) -> bool {
        match self {
            Request::Yield { .. }
            | Request::Sleep { .. }
            | Request::Io { .. }
            | Request::Join { .. }
            | Request::Wait { .. }
            | Request::Offload { .. }
            | Request::Signal(_)
            | Request::NextSignal(_)
            | Request::Foreign { .. }
            | Request::Outside { .. } => true,
            Request::Clock
            | Request::WallClock
            | Request::CurrentTask
            | Request::Deadline
            | Request::CheckInterrupt
            | Request::HeldInterrupt
            | Request::OpenScope { .. }
            | Request::Spawn { .. }
            | Request::Cancel { .. }
            | Request::Wake { .. } => false,
        }
    }
}

/// What a task tells its kernel without waiting for an answer; safe to make in a `Drop`.
pub enum Post {
    /// The future of a parked ticket is gone.
    Withdraw(Ticket),
    /// An interrupt was delivered but its future was dropped unread: it is pending again.
    Unread(Interrupt),
    /// A descriptor looked ready but the future was dropped unread: it is remembered.
    Remember {
        /// Which.
        handle: HandleId,
        /// Which side of it.
        direction: Direction,
    },
    /// A signal arrived but its future was dropped unread: it is for the next who waits.
    Keep {
        /// Which.
        signal: Signal,
        /// The kernel that it came to.
        epoch: u32,
    },
    /// A job ended but its future was dropped unread: it is an orphan.
    Orphan {
        /// Its number.
        job: u64,
        /// Who asked for it.
        task: TaskRef,
        /// Where.
        site: Site,
        /// With its value.
        work: Box<dyn Work>,
    },
    /// The future of a parked ticket is now polled in another scope, or by another task: that one.
    Rehome(Ticket, TaskRef),
    /// A scope's future is now polled in another task or scope.
    RehomeScope {
        /// Which.
        scope: ScopeId,
        /// The task that polls it now.
        task: TaskRef,
        /// The scope around it there.
        parent: ScopeId,
    },
    /// A scope ends.
    CloseScope {
        /// Which.
        scope: ScopeId,
        /// What came out of it.
        left: Left,
    },
    /// A connection deadline was made; told where somebody listens or sweeps.
    MakeDeadline {
        /// Which.
        deadline: DeadlineName,
        /// Where.
        site: Site,
    },
    /// A connection deadline is armed or disarmed, in a way that takes more than a store.
    SetDeadline {
        /// Which.
        deadline: DeadlineName,
        /// Until when; [`Time::NEVER`] disarms it.
        until: Time,
        /// Whose it is from now on.
        owner: u32,
        /// Where that was said.
        site: Site,
    },
    /// A guard ends, which closes no scope: it is kept for the next guard of its deadline.
    LeaveGuard {
        /// Which.
        deadline: DeadlineName,
        /// Its scope, if it came to have one.
        scope: Option<ScopeId>,
        /// Whose the deadline is from now on.
        owner: u32,
    },
    /// A connection deadline is gone.
    DropDeadline {
        /// Which.
        deadline: DeadlineName,
    },
    /// A handle is closed: its waiters end with [`Failure::Closed`]. A `Release` of it follows.
    Close {
        /// Which.
        handle: HandleId,
    },
    /// A handle is gone: its waiters end with [`Failure::Closed`].
    Release {
        /// Which.
        handle: HandleId,
        /// What it stood for.
        descriptor: Descriptor,
        /// The descriptor itself, closed when the kernel has let go of it.
        owner: Option<OwnedFd>,
        /// Whether closing `owner` ends its registration (no duplicate of it exists).
        sole: bool,
    },
    /// A task that nobody can join is to be made.
    Spawn(Birth),
    /// Nobody will join the task.
    Detach(TaskRef),
    /// The task is to be cancelled; whoever asks does not wait.
    Cancel {
        /// Which.
        task: TaskRef,
        /// Shown in the log and in the interrupt.
        reason: &'static str,
    },
    /// The task's future is to be dropped: its grace is over.
    Drop(TaskRef),
    /// The task's waker was called on the kernel's own thread.
    Woken(TaskRef),
    /// The ticket of a [`Request::Outside`] was woken on the kernel's own thread.
    WakeTicket(Ticket),
    /// Wake one waiter, or keep a permit for the next.
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
        /// At most so many.
        n: u64,
    },
    /// A line for the log.
    Note {
        /// What it says.
        note: Note,
        /// How many lines came before it of deadlines, arms and scopes that nobody was told of.
        untold: u64,
    },
}

impl Post {
    /// The kernel it is for; `None`: whichever runs.
    #[must_use]
    pub fn epoch(&self) -> Option<u32> {
        match self {
            Post::Withdraw(ticket) | Post::Rehome(ticket, _) | Post::WakeTicket(ticket) => {
                Some(ticket.epoch)
            }
            Post::Unread(interrupt) => Some(interrupt.delivered_in().epoch),
            Post::RehomeScope { scope, .. } | Post::CloseScope { scope, .. } => Some(scope.epoch),
            Post::MakeDeadline { deadline, .. }
            | Post::SetDeadline { deadline, .. }
            | Post::LeaveGuard { deadline, .. }
            | Post::DropDeadline { deadline, .. } => Some(deadline.epoch),
            Post::Close { handle }
            | Post::Release { handle, .. }
            | Post::Remember { handle, .. } => Some(handle.epoch),
            Post::Detach(task) | Post::Woken(task) | Post::Drop(task) => Some(task.epoch),
            Post::Cancel { task, .. } | Post::Orphan { task, .. } => Some(task.epoch),
            Post::Spawn(birth) => Some(birth.parent.epoch),
            Post::Permit { queue, .. } => queue.epoch(),
            // Where nobody waits, the wait may have been filed in this very poll: in this kernel.
            Post::Wake { queue, .. } => queue.epoch().filter(|_| queue.waiting.get() > 0),
            Post::Keep { epoch, .. } => Some(*epoch),
            Post::Note { .. } => None,
        }
    }
}

/// What the kernel took from the gate.
pub enum Filed {
    /// To be answered.
    Request {
        /// Where the result goes.
        ticket: Ticket,
        /// Who filed it.
        task: TaskRef,
        /// In which scope it was filed.
        scope: ScopeId,
        /// What is asked.
        request: Request,
        /// By whom.
        site: Site,
    },
    /// To be heeded.
    Post(Post),
    /// To be opened, in the task that is being polled.
    Opening(Opening),
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
