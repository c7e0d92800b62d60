//! The protocol: what a task can ask of the kernel, and what it gets.

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
}

/// An answer of the kernel.
#[derive(Debug)]
pub enum Reply {
    Done,
    Time(Time),
}
