//! What tasks and threads share: a queue and an event, awaited on one side, blocking on the other.
//!
//! Built from [`outside()`](crate::outside()) and one lock for each object; the kernel knows
//! nothing of it. `queue.rs` and `event.rs` have the objects, `line.rs` has what lies behind the
//! lock, `waiting.rs` has how a task and a thread wait for it. A thread's timeouts are in real time
//! and read the system's clock; a task's are scopes, as everywhere.

mod event;
mod line;
mod queue;
mod waiting;

pub use event::{UniversalEvent, WaitEvent};
pub use queue::{Get, Put, UniversalQueue};
pub use waiting::Waiting;

#[cfg(all(test, loom))]
mod model_tests;
#[cfg(all(test, not(loom)))]
mod queue_tests;
