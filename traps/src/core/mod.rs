//! The core of the trap protocol: what a task and its kernel exchange, and where.
//!
//! | file | is |
//! |---|---|
//! | `protocol.rs` | traps, replies and posts |
//! | `table.rs` | tables with keys that name one row; lists and queues of waits |
//! | `records.rs` | the records of tasks and waits |
//! | `gate.rs` | the meeting place |
//! | `wait.rs` | the one future that traps |
//!
//! What may end a wait early is in `interrupts/`.

pub mod gate;
pub mod protocol;
pub mod records;

pub mod table;
pub mod wait;
