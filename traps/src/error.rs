//! The errors of traps that can fail in more ways than by an interrupt.

use std::fmt;
use std::io;

use crate::cancellable::NotStarted;
use crate::interrupt::{Interrupt, Interruptible, carries_interrupt};
use crate::protocol::{Answer, Failure};

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

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Interrupt(interrupt) => Some(interrupt),
            Error::NotStarted(error) => Some(error),
            Error::Io(error) => Some(error),
            Error::Busy | Error::Closed => None,
        }
    }
}

impl From<Interrupt> for Error {
    fn from(interrupt: Interrupt) -> Error {
        Error::Interrupt(interrupt)
    }
}

impl From<NotStarted> for Error {
    fn from(error: NotStarted) -> Error {
        Error::NotStarted(error)
    }
}

impl Interruptible for Error {
    fn interrupt(&self) -> Option<&Interrupt> {
        match self {
            Error::Interrupt(interrupt) => Some(interrupt),
            Error::Io(error) => error.interrupt(),
            Error::Busy | Error::Closed | Error::NotStarted(_) => None,
        }
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        match self {
            Error::Interrupt(interrupt) => Some(interrupt),
            Error::Io(error) => error.interrupt_mut(),
            Error::Busy | Error::Closed | Error::NotStarted(_) => None,
        }
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

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        match failure {
            Failure::Interrupt(interrupt) => Error::Interrupt(interrupt),
            Failure::Busy => Error::Busy,
            Failure::Closed => Error::Closed,
            Failure::Refused(error) => Error::Io(error),
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

/// The interrupt in `failure`, for a trap that can fail in no other way.
pub(crate) fn only_interrupt(failure: Failure) -> Interrupt {
    match failure {
        Failure::Interrupt(interrupt) => interrupt,
        other => unreachable!("rule: this trap fails by an interrupt only, not by {other:?}"),
    }
}

/// For a match on the result of an answering trap: the kernel broke the protocol.
#[cold]
pub(crate) fn never_fails(failure: &Failure) -> ! {
    unreachable!("rule: an answering trap does not fail, not even by {failure:?}")
}

/// For a match on an answer: the kernel broke the protocol.
#[cold]
pub(crate) fn wrong_answer(answer: &Answer) -> ! {
    unreachable!("rule: a request is answered in kind, not by {answer:?}")
}
