//! The core of the trap protocol: what a task and its kernel exchange, and where.
//!
//! | file | is |
//! |---|---|
//! | `table.rs` | tables with keys that name one row; queues of waits |
//! | `interrupt.rs` | why a wait ended early, and how an error carries that upwards |
//! | `protocol.rs` | traps, replies and posts |
//! | `records.rs` | the records of waits and scopes, and what is pending in them |
//! | `pending.rs` | which scopes have fired, and which wait takes what is pending |
//! | `gate.rs` | the meeting place |
//! | `wait.rs` | the one future that traps |
//! | `scope.rs` | futures that run inside a scope |

pub mod gate;
pub mod protocol;
pub mod records;

pub mod table;
pub mod wait;
