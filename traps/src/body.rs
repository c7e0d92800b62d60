//! What a task is made of, as its kernel sees it.
//!
//! Knows no future: whoever spawns one implements it.

use std::any::Any;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::protocol::{Site, TaskRef};

/// The body of a task: its future, then its output, in one allocation.
pub trait Body {
    /// Polls the future; keeps its output.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()>;
    /// Moves the output into `slot`, an `Option` of the output's type.
    fn take(self: Pin<&mut Self>, slot: &mut dyn Any);
    /// Drops the output; the name and the place stay.
    fn clear(self: Pin<&mut Self>);
    /// The task is gone: drops what is left, but for memory that others may use.
    fn retire(self: Pin<Box<Self>>);
    /// The task's name.
    fn name(&self) -> &str;
    /// Where it was spawned.
    fn site(&self) -> Site;
}

/// A task to be made, whose number nobody waits for.
pub struct Birth {
    /// What it is made of.
    pub body: Pin<Box<dyn Body>>,
    /// Who asks.
    pub parent: TaskRef,
}
