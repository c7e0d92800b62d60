//! The trap protocol of trapline: everything that a task can ask of a kernel. The kernel itself is
//! another crate.
//!
//! A task is an ordinary [`Future`]. At the bottom of every chain of awaits is a hand-written
//! future that files one *trap* at the *gate*, the place where a task and its kernel meet, and
//! returns `Pending`. The kernel answers the trap, and the next poll takes the reply. A trap either
//! **answers** (the task is polled again at once) or **blocks** (the task leaves the CPU until the
//! reply exists). A blocking trap can end early with an [`Interrupt`]. In that case the trap has
//! had no effect.
//!
//! A *wait* is one record at the gate. It exists from the poll that files its trap until its result
//! is read or its future is dropped. Scopes are records at the gate, too, and so is the half of a
//! task that its own polls need.
//!
//! To read the source, begin in `traps/src/core/`: `protocol.rs` (traps, replies and posts),
//! `table.rs` (tables, keys and lists), `records.rs` (tasks and waits), `gate.rs`
//! (how traps and replies travel), `wait.rs` (the one future that traps). Then read any verb:
//! [`sleep()`], [`spawn()`], [`timeout_after`]. The kernel answers them in its own `core/`. What
//! may end a wait early is in `traps/src/interrupts/`.
//!
//! | for | there is |
//! |---|---|
//! | time | [`sleep()`], [`interval()`], [`timeout_after`], [`shield`], [`ConnectionDeadline`], [`cancellable()`] |
//! | tasks | [`spawn()`], [`TaskGroup`], [`join`], [`race`], [`foreign()`], [`TaskLocal`] |
//! | other tasks | [`sync`], [`channel`]; [`WaitQueue`], the base of both |
//! | work that blocks | [`run_in_thread()`], [`iterate_in_thread()`], [`threads::Limiter`] |
//! | too much work | [`admission::AdmissionLimit`], [`TokenBucket`] for a rate |
//! | other threads | [`universal`]: a queue and an event; [`outside()`], the trap below them |
//! | descriptors | [`io`] |
//! | the log | [`note`], [`span()`], [`note_warning`] |
//! | a replay | [`is_replaying`] |
//! | the process | [`signals()`], [`wait_signal`]; [`shutdown`], the shutdown as tasks see it |
//!
//! All names can be imported at once; none of them hides a crate of the standard library:
//!
//! ```
//! use core::time::Duration;
//! use traps::*;
//!
//! async fn pause() -> Result<Time, Interrupt> {
//!     sleep(Duration::from_secs(1)).await
//! }
//! # let _ = pause;
//! ```
//!
//! A trap future belongs to the gate of its thread, so it is not `Send`. A type that contains a
//! trap future is not `Send` either:
//!
//! ```compile_fail,E0277
//! fn send(_: impl Send) {}
//! send(traps::sleep(std::time::Duration::ZERO));
//! ```
//!
//! ```compile_fail,E0277
//! fn send(_: impl Send) {}
//! send(async { traps::clock().await });
//! ```
//!
//! ```compile_fail,E0277
//! fn send(_: impl Send) {}
//! send(traps::timeout_after(None, std::future::ready(Ok::<(), traps::Interrupt>(()))));
//! ```
//!
//! ```compile_fail,E0277
//! fn send<T: Send>() {}
//! send::<traps::Task<()>>();
//! ```
//!
//! Not here: this crate has no kernel, no clock, no thread, no descriptor of its own, and no
//! unsafe code. (Threads that block in [`universal`] read the system's clock for their timeouts.)
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `stream` | off | the receivers of [`channel`] are streams of `futures-core` |
//! | `anyhow`, `eyre` | off | the errors of these crates carry interrupts out of scopes |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod admission;
mod bucket;
pub mod channel;
mod check;
mod combine;
mod context;
mod core;
pub mod deadline;
mod error;
mod group;
mod interrupts;
mod interval;
#[doc(hidden)] // so that `.ci/run semver` does not compare it
pub mod internal {
    //! Not for programs: the seam between this crate and the kernel, `net` and the test tools,
    //! which can change in any release.

    pub use crate::context::{Caller, ThreadClock, ThreadContext};
    pub use crate::core::{gate, protocol, records, table, wait};
    pub use crate::error::{
        drop_of_task, drop_quietly, into_panic_message, panic_message, quietly,
    };
    pub use crate::interrupts::interrupt::Delivery;
    pub use crate::interrupts::{interrupt, pending, scope, source};
    pub use crate::notes::{Throttle, note_cap};
    pub use crate::parts::{deadlines, fd, liberty, signals, tape};
    pub use crate::signal::keep_statuses;
    pub use crate::task::{any_locals, body_without_handle, drop_locals, inherit_locals};
    pub use crate::threads::ask_in_thread;
    pub use crate::verbs::{budget_from, sleep_from, spend_budget, take_budget, take_pending_from};
}
pub mod io;
mod locals;
mod notes;
pub mod outside;
mod parts {
    //! Parts outside the core. A kernel shares each of them with its tasks.

    pub mod deadlines;
    pub mod handles;
    pub mod jobs;
    pub mod liberty;
    pub mod log;
    pub mod signals;
    pub mod tape;
    pub mod fd {
        //! Descriptors of the operating system. Systems other than Unix have stand-ins, because
        //! only scripted descriptors exist there.

        #[cfg(unix)]
        pub use std::os::fd::{OwnedFd, RawFd};

        /// The number of a descriptor. No descriptor has one.
        #[cfg(not(unix))]
        pub type RawFd = i32;

        /// A type without values.
        #[cfg(not(unix))]
        #[derive(Debug)]
        pub enum OwnedFd {}
    }
}
pub mod shutdown;
mod signal;
pub mod sync;
mod task;
pub mod threads;
pub mod time;
mod timeout;
pub mod universal;
mod verbs;

pub use bucket::TokenBucket;
pub use combine::{
    Either, Either3, Join2, Join3, JoinAll, Race, Race3, join, join_all, join3, race, race3,
};
pub use core::table::{Site, TaskId};
pub use deadline::{ConnectionDeadline, Guard, TaskGuard, connection_deadline};
pub use error::{Error, Rejected};
pub use group::{Member, Spawner, TaskGroup};
pub use interrupts::interrupt::{Interrupt, Interruptible, Kind};
pub use interrupts::scope::{Branch, Shield, branch, shield};
pub use interval::{Interval, MissedTick, interval};
pub use locals::{InheritedLocal, TaskLocal};
pub use notes::{Spanned, is_traced, note, note_warning, span};
pub use outside::{OutsideWaker, WaitOutside, outside};
pub use parts::tape::is_replaying;
pub use signal::{Signal, SignalSet, SignalStream, signals, wait_signal};
pub use sync::{WaitInQueue, WaitQueue};
pub use task::{IntoJoin, Join, Task};
pub use task::{Spawn, SpawnDetached, spawn};
pub use threads::{iterate_in_thread, run_in_thread};
pub use time::{Limit, Time};
pub use timeout::{
    Foreign, IgnoreAfter, TimeoutAfter, cancellable, foreign, ignore_after, ignore_at,
    timeout_after, timeout_at,
};
pub use verbs::{
    Budget, Sleep, budget, check_cancellation, clock, current_deadline, current_task, remaining,
    sleep, wall_clock, yield_now,
};
