//! Why an operation on a universal queue was not done.

use std::fmt;
use std::io;

use crate::interrupt::{Interrupt, Interruptible, carries_interrupt};

/// Why an operation on a [`UniversalQueue`](super::UniversalQueue) was not done. Nothing was:
/// whatever the reason, no item went in or out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueError {
    /// A task's wait ended early: a timeout or a cancellation.
    Interrupt(Interrupt),
    /// A thread's wait ended early: its span is over.
    TimedOut,
    /// The queue was closed; for a get, it is also empty, for good.
    Closed,
    /// There is no room now (`try_put`).
    Full,
    /// There is no item now (`try_get`).
    Empty,
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueError::Interrupt(interrupt) => interrupt.fmt(f),
            QueueError::TimedOut => f.write_str("the queue kept its caller waiting too long"),
            QueueError::Closed => f.write_str("the queue was closed"),
            QueueError::Full => f.write_str("the queue is full"),
            QueueError::Empty => f.write_str("the queue is empty"),
        }
    }
}

impl std::error::Error for QueueError {}

carries_interrupt!(QueueError);

/// `TimedOut`, `BrokenPipe` for `Closed`, `WouldBlock` for `Full` and `Empty`.
impl From<QueueError> for io::Error {
    fn from(error: QueueError) -> io::Error {
        let kind = match error {
            QueueError::Interrupt(interrupt) => return interrupt.into(),
            QueueError::TimedOut => io::ErrorKind::TimedOut,
            QueueError::Closed => io::ErrorKind::BrokenPipe,
            QueueError::Full | QueueError::Empty => io::ErrorKind::WouldBlock,
        };
        io::Error::new(kind, error)
    }
}

/// Why an item was not put, and the item.
#[derive(Clone, PartialEq, Eq)]
pub struct PutError<T> {
    /// The item to put. `None` only where a scope around the put ended before that was ever
    /// polled, and dropped it.
    pub item: Option<T>,
    /// Why it was not.
    pub why: QueueError,
}

/// Without the item, which may not be printable.
impl<T> fmt::Debug for PutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutError").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for PutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<T> std::error::Error for PutError<T> {}

impl<T> From<Interrupt> for PutError<T> {
    fn from(interrupt: Interrupt) -> PutError<T> {
        PutError { item: None, why: interrupt.into() }
    }
}

impl<T> Interruptible for PutError<T> {
    fn interrupt(&self) -> Option<&Interrupt> {
        self.why.interrupt()
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        self.why.interrupt_mut()
    }
}

/// Drops the item.
impl<T> From<PutError<T>> for QueueError {
    fn from(error: PutError<T>) -> QueueError {
        error.why
    }
}

/// Drops the item.
impl<T> From<PutError<T>> for io::Error {
    fn from(error: PutError<T>) -> io::Error {
        error.why.into()
    }
}
