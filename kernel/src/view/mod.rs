//! What an owner can see of a kernel from outside: counters, and each task.
//!
//! Snapshots: nothing here changes anything.

mod counters;
mod deadlock;
mod quiescence;
mod table;
mod tasks;

pub use counters::Counters;
pub use quiescence::Outstanding;
pub(crate) use quiescence::hangs;
pub use table::TaskTable;
pub use tasks::{ParkedView, TaskView};
