//! What tasks and threads share: a queue and an event, awaited on one side, blocking on the other.
//!
//! Built from [`outside()`](crate::outside()) and locks; nothing of it is known to the kernel. The
//! queue's decisions are in `core.rs`, a pure structure, behind the two locks of `locked.rs`;
//! `operations.rs` has the steps of a put and a get, and `waiter.rs` how a task and a thread take
//! them. A thread's timeouts are in real time and read the system's clock; a task's are scopes, as
//! everywhere.

mod core;
mod error;
mod event;
mod locked;
#[cfg(all(test, loom))]
mod model;
mod operations;
mod queue;
mod waiter;

pub use error::{PutError, QueueError};
pub use event::{UniversalEvent, WaitEvent};
pub use queue::{Get, Put, UniversalQueue};
