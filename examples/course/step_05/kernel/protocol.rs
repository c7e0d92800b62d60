//! The protocol: the requests of a task, and the replies of the kernel.

use std::pin::Pin;
use std::time::Duration;

use super::*;

/// The number of a task, from 1.
pub type TaskId = u32;

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
