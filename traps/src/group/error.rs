//! Why a group of tasks gave no outputs.

use std::fmt;
use std::io;

use crate::interrupt::{Interrupt, carries_interrupt};
use crate::task::TaskId;

/// Why the join of a [`TaskGroup`](crate::TaskGroup) gave no outputs. All members have ended.
///
/// Carries the joiner's own interrupt to the scope that it belongs to; one in `Failed` is of
/// another task and is only reported.
///
/// ```no_run
/// use traps::{GroupError, Interrupt, TaskGroup};
///
/// # async fn example(mut group: TaskGroup<u32, Interrupt>) -> Result<(), Interrupt> {
/// match group.join().await {
///     Ok(outputs) => println!("{outputs:?}"),
///     Err(GroupError::Failed { task, error }) => println!("task {task}: {error}"),
///     Err(GroupError::Panicked { task, message }) => println!("task {task}: {message}"),
///     Err(GroupError::Interrupt(why)) => return Err(why),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupError<E> {
    /// A member ended with this error, before any other failed.
    Failed {
        /// Which.
        task: TaskId,
        /// As it gave it.
        error: E,
    },
    /// A member panicked, before any other failed.
    Panicked {
        /// Which.
        task: TaskId,
        /// The panic's, as far as it is text.
        message: String,
    },
    /// The joiner's own wait ended early.
    Interrupt(Interrupt),
}

impl<E: fmt::Display> fmt::Display for GroupError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupError::Failed { task, error } => write!(f, "task {task} failed: {error}"),
            GroupError::Panicked { task, message } => write!(f, "task {task} panicked: {message}"),
            GroupError::Interrupt(interrupt) => interrupt.fmt(f),
        }
    }
}

impl<E: std::error::Error> std::error::Error for GroupError<E> {}

carries_interrupt!(GroupError<E>);

/// The member's error as it is; a panic becomes kind `Other`.
impl From<GroupError<io::Error>> for io::Error {
    fn from(error: GroupError<io::Error>) -> io::Error {
        match error {
            GroupError::Failed { error, .. } => error,
            GroupError::Panicked { .. } => io::Error::other(error),
            GroupError::Interrupt(interrupt) => interrupt.into(),
        }
    }
}
