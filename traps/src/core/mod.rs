//! The core of the trap protocol: what a task and its kernel exchange, and where.
//!
//! | file | is |
//! |---|---|
//! | `table.rs` | tables with keys that are never used twice |
//! | `names.rs` | the names of waits, scopes, tasks and handles |
//! | `interrupt.rs` | why a wait ended early, and how an error carries that upwards |
//! | `queue.rs`, `signals.rs`, `limiter.rs`, `deadlines.rs` | what a kernel and its tasks share |
//! | `protocol.rs` | traps, replies and posts |
//! | `records.rs`, `tree.rs` | the records of waits and scopes; the tree of scopes |
//! | `pending.rs` | what is pending in the tree |
//! | `gate.rs`, `kernel_side.rs` | the meeting place |
//! | `filing.rs`, `posting.rs`, `opening.rs` | traps, posts and scopes at the gate |
//! | `call.rs` | the one future that traps |
//! | `scope.rs` | futures that run inside a scope |

pub mod call;
pub mod deadlines;
pub(crate) mod filing;
pub mod gate;
pub mod interrupt;
pub mod kernel_side;
pub mod limiter;
pub mod names;
pub(crate) mod opening;
pub mod pending;
pub(crate) mod posting;
pub mod protocol;
pub mod queue;
pub mod records;
pub mod scope;
pub mod signals;
pub mod table;
pub mod tree;
