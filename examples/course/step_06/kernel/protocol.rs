//! The protocol: the requests of a task, and the replies of the kernel.

use std::panic::Location;
use std::pin::Pin;
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
}

/// A task to be spawned.
pub struct NewTask {
    pub name: String,
    pub body: Pin<Box<dyn Future<Output = ()>>>,
}

/// A reply of the kernel.
#[derive(Debug)]
pub enum Reply {
    Done,
    Time(Time),
    /// The new task.
    Task(TaskId),
}

/// A message of a task, without a reply.
pub enum Post {
    /// A verb of the log, with its detail.
    Note(&'static str, String),
}
