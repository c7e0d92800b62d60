//! The parts of the kernel next to its core. Each is one structure, and its methods.
//!
//! | file | content |
//! |---|---|
//! | `io.rs` | descriptors: their registrations, waits, and remembered readiness |
//! | `wakers.rs` | the wakers of tasks; messages of other threads |
//! | `wakes.rs` | task 1, which empties the wake queue |
//! | `wake_queue.rs` | the wake queue, shared with other threads |
//! | `deadlines.rs` | the scan of the deadline table |
//! | `longrun.rs` | runs that are too long |
//! | `sweep.rs` | the hook for tests |

pub(crate) mod deadlines;
pub(crate) mod io;
pub(crate) mod longrun;
pub(crate) mod sweep;
pub(crate) mod wake_queue;
pub(crate) mod wakers;
pub(crate) mod wakes;
