//! Errors of traps that can fail in other ways than by an interrupt.

use std::fmt;
use std::io;

use crate::call::{Reply, only_interrupt};
use crate::cancellable::NotStarted;
use crate::interrupt::{Interrupt, carries_interrupt};
use crate::protocol::{Answer, Owned};

/// Why a wait for a descriptor came to nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The wait ended early: a timeout or a cancellation.
    Interrupt(Interrupt),
    /// Another task already waits for this direction of this descriptor; it is not affected.
    Busy,
    /// The handle was closed, here or by another task.
    Closed,
    /// The operation was not begun: see [`cancellable`](crate::cancellable()).
    NotStarted(NotStarted),
    /// The operating system refused, for example to watch a regular file.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Interrupt(interrupt) => interrupt.fmt(f),
            Error::Busy => f.write_str("another task already waits for this direction"),
            Error::Closed => f.write_str("the handle was closed"),
            Error::NotStarted(error) => error.fmt(f),
            Error::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

carries_interrupt!(Error, Io);

impl From<NotStarted> for Error {
    fn from(error: NotStarted) -> Error {
        Error::NotStarted(error)
    }
}

/// `Busy` becomes kind `ResourceBusy`, `Closed` becomes `NotConnected`.
impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        match error {
            Error::Interrupt(interrupt) => interrupt.into(),
            Error::NotStarted(error) => error.into(),
            Error::Io(error) => error,
            Error::Busy => io::Error::new(io::ErrorKind::ResourceBusy, error),
            Error::Closed => io::Error::new(io::ErrorKind::NotConnected, error),
        }
    }
}

impl Error {
    /// Why a wait for a descriptor or a signal came to nothing.
    pub(crate) fn of(reply: Reply) -> Result<Answer, Error> {
        match reply.open() {
            Ok(Answer::Busy) => Err(Error::Busy),
            Ok(Answer::Closed) => Err(Error::Closed),
            Ok(answer) => Ok(answer),
            Err(Owned::Refused(error)) => Err(Error::Io(error)),
            Err(owned) => Err(Error::Interrupt(only_interrupt(owned))),
        }
    }
}

/// Why a join gave no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinError {
    /// The joiner's own wait ended early; the joined task is not touched.
    Interrupt(Interrupt),
    /// The task panicked, with this message.
    Panicked(String),
    /// The task was dropped before it ended: its kernel shut down, or it slept through its grace.
    Dropped,
    /// The output was taken before; or the task is not one of the kernel that runs, or its kernel
    /// is shut down.
    Taken,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Interrupt(interrupt) => interrupt.fmt(f),
            JoinError::Panicked(message) => write!(f, "the task panicked: {message}"),
            JoinError::Dropped => f.write_str("the task was dropped before its end"),
            JoinError::Taken => f.write_str("the task's output was taken before"),
        }
    }
}

impl std::error::Error for JoinError {}

carries_interrupt!(JoinError);

impl From<JoinError> for io::Error {
    fn from(error: JoinError) -> io::Error {
        match error {
            JoinError::Interrupt(interrupt) => interrupt.into(),
            other => io::Error::other(other),
        }
    }
}
