//! The protocol: the requests of a task, and the replies of the kernel.

use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use super::*;

/// The number of a task, from 1.
pub type TaskId = u32;
/// A line in the source of the program.
pub type Site = &'static Location<'static>;

/// A request of a task.
pub enum Trap {
    /// *Answers* with the time.
    Clock,
    /// *Blocks* until every task that is ready now has run.
    Yield,
    /// *Blocks* until this span has passed.
    Sleep(Duration),
    /// *Answers* with the number of the new task.
    Spawn(NewTask),
    /// *Blocks* until this task has ended.
    Join(TaskId),
    /// *Blocks* until the descriptor looks ready.
    Io(HandleId, Direction),
    /// *Answers* with the number of a new scope, inside the scopes that the task has opened.
    Open(ScopeKind),
    /// *Answers*: closes the innermost scope. The interrupt, if any, leaves the scope.
    Close(u32, Option<Interrupt>),
    /// *Answers*: interrupts this task, now or at its next blocking trap.
    Cancel(TaskId),
    /// *Blocks* until this job has run on a new thread.
    Offload(Job),
    /// *Answers* with the number of a new entry in the deadline table.
    ConnectionDeadline,
}

/// A task to be spawned.
pub struct NewTask {
    pub name: String,
    pub body: Pin<Box<dyn Future<Output = ()>>>,
}

/// The kind of a scope.
#[derive(Clone, Copy)]
pub enum ScopeKind {
    /// Interrupts its task when the span has passed.
    Timeout(Duration),
    /// Holds back interrupts from outside.
    Shield,
    /// Interrupts its task when this connection deadline passes.
    Guard(u32),
}

/// A reply of the kernel.
#[derive(Debug)]
pub enum Reply {
    Done,
    Time(Time),
    /// The new task.
    Task(TaskId),
    /// The new scope.
    Scope(u32),
    /// The new connection deadline.
    Deadline(u32),
    /// The machine refused the wait with this error.
    Refused(std::io::Error),
    Interrupt(Interrupt),
}

impl Reply {
    /// Returns an interrupt as an error, and any other reply as it is.
    pub fn interrupted(self) -> Result<Reply, Interrupt> {
        match self {
            Reply::Interrupt(interrupt) => Err(interrupt),
            reply => Ok(reply),
        }
    }
}

/// A message of a task, without a reply.
pub enum Post {
    /// A verb of the log, with its detail.
    Note(&'static str, String),
    Opened(HandleId, Rc<dyn Source>),
    Closed(HandleId),
    /// A task has read or written this many bytes.
    Moved(HandleId, Direction, usize),
    /// A listener has accepted a connection.
    Accepted(HandleId, HandleId),
    Armed(u32, Time),
    Disarmed(u32),
}
