//! The names that the two sides of a gate use, and other plain words.

use std::fmt;
use std::os::fd::RawFd;
use std::panic::Location;

use super::table::Key;

/// Where in the user's source a trap was made.
pub type Site = &'static Location<'static>;

/// The kind of a [`Ticket`].
#[derive(Debug)]
pub enum OfWait {}
/// The kind of a [`ScopeId`].
#[derive(Debug)]
pub enum OfScope {}
/// The kind of a [`HandleId`].
#[derive(Debug)]
pub enum OfHandle {}

/// Names a wait, from the poll that files it until its result is read or its future is dropped.
pub type Ticket = Key<OfWait>;
/// Names an open scope.
pub type ScopeId = Key<OfScope>;
/// Names a task: the scope around all that it does.
pub type TaskRef = ScopeId;
/// Names an owned descriptor.
pub type HandleId = Key<OfHandle>;

/// The number of a task in its kernel: dense, from 1, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
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
