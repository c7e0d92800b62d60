//! Interrupts: why a wait ended before its time.

use super::*;

/// A wait that ended early.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt {
    pub(super) kind: Kind,
    /// The scope whose deadline fired; 0 for a cancellation.
    pub(super) scope: u32,
    pub(super) set_at: Option<Site>,
}

/// The kind of an interrupt, from the point of view of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The deadline of this scope has passed.
    TaskTimeout,
    /// The deadline of a scope outside of this one has passed.
    TimeoutCancellation,
    /// A scope inside of this one let its timeout out.
    UncaughtTimeout,
}

impl Interrupt {
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl std::error::Error for Interrupt {}

/// An error that may hold an interrupt.
pub trait Interruptible {
    fn interrupt(&mut self) -> Option<&mut Interrupt>;
}

impl Interruptible for Interrupt {
    fn interrupt(&mut self) -> Option<&mut Interrupt> {
        Some(self)
    }
}
