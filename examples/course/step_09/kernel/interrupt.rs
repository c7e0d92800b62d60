//! Interrupts: the errors of waits that end early.

use super::*;

/// The error of a wait that ended early.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt {
    pub(super) kind: Kind,
    /// The scope whose deadline fired; 0 for a cancellation.
    pub(super) scope: u32,
    pub(super) set_at: Option<Site>,
    /// The task that asked for the cancellation.
    pub(super) by: TaskId,
}

/// The kind of an interrupt, seen from a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The deadline of this scope has passed.
    TaskTimeout,
    /// The deadline of a scope around this one has passed.
    TimeoutCancellation,
    /// The deadline of an inner scope has passed, and its timeout was not handled there.
    UncaughtTimeout,
    Cancelled,
}

impl Interrupt {
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl std::error::Error for Interrupt {}

/// An error that may contain an interrupt.
pub trait Interruptible {
    fn interrupt(&mut self) -> Option<&mut Interrupt>;
}

impl Interruptible for Interrupt {
    fn interrupt(&mut self) -> Option<&mut Interrupt> {
        Some(self)
    }
}
