//! The trap protocol of trapline: everything that a task may ask of a kernel. How a kernel answers
//! is not part of this crate.
//!
//! A task is an ordinary [`Future`]. At the bottom of every chain of awaits is a hand-written
//! future that files one [`Trap`](core::protocol::Trap) at the [`gate`](core::gate) and returns
//! `Pending`. The kernel answers it, and the next poll takes the reply. A trap either **answers**
//! (the task is polled again at once) or **blocks** (the task leaves the CPU until the reply
//! exists). A trap that blocks can end early with an [`Interrupt`]. It has then done nothing.
//!
//! A wait is one record at the gate, from the poll that files its trap until its result is read or
//! its future is dropped. Scopes are records there too. A task is named by its root scope.
//!
//! Read in this order: [`core::protocol`] (what can be asked), [`core::records`] (a wait, a scope),
//! [`core::gate`] and [`core::kernel_side`] (how traps and replies travel), `core/call.rs` (the one
//! future that traps), [`core::tree`] (scopes and the waits in them), [`core::pending`] (which
//! interrupt a wait gets). Then read any verb: [`sleep()`], [`spawn()`], [`timeout_after`]. The
//! kernel's `core/` answers them.
//!
//! | for | there is |
//! |---|---|
//! | time | [`sleep()`], [`timeout_after`], [`shield`], [`ConnectionDeadline`], [`cancellable()`] |
//! | tasks | [`spawn()`], [`TaskGroup`], [`join`], [`race`], [`foreign()`], [`TaskLocal`] |
//! | other tasks | [`sync`], [`channel`]; [`WaitQueue`], of which they are made |
//! | work that blocks | [`run_in_thread()`], [`iterate_in_thread()`], [`threads::Limiter`] |
//! | too much work | [`admission::Limit`] |
//! | other threads | [`universal`]: a queue and an event; [`outside()`], the trap below them |
//! | descriptors | [`io`] |
//! | the log | [`note`], [`span()`], [`note_warning`] |
//! | tests | [`liberty`]: what an explorer decides |
//! | the process | [`signals()`], [`wait_signal`]; [`shutdown`], the shutdown as tasks see it |
//!
//! A trap future belongs to the gate of its thread, so it is not `Send`. Nor is any type that
//! contains one:
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

#![forbid(unsafe_code)]

pub mod admission;
mod cancellable;
pub mod channel;
mod combine;
pub mod core;
pub mod deadline;
mod error;
mod foreign;
mod group;
pub mod io;
pub mod liberty;
mod limits;
mod notes;
pub mod outside;
pub mod shutdown;
mod signal;
pub mod sync;
mod task;
pub mod threads;
pub mod time;
mod timeout;
pub mod universal;
mod verbs;

pub use cancellable::cancellable;
pub use combine::{Either, Join2, JoinAll, Race, join, join_all, race};
pub use core::interrupt::{Delivery, Interrupt, Interruptible, Kind};
pub use core::names::TaskId;
pub use core::scope::{Branch, Shield, branch, shield};
pub use deadline::{ConnectionDeadline, Guard, TaskGuard, connection_deadline};
pub use error::{Error, Rejected};
pub use foreign::{Foreign, foreign};
pub use group::{Member, Spawner, TaskGroup};
pub use notes::{Span, is_traced, note, note_cap, note_warning, span};
pub use outside::{OutsideWaker, WaitOutside, outside};
pub use signal::{Signal, SignalSet, Signals, signals, wait_signal};
pub use sync::{Wait, WaitQueue};
pub use task::local::{InheritedLocal, TaskLocal};
pub use task::spawn::{Spawn, SpawnDetached, spawn};
pub use task::values::{any_locals, drop_locals, inherit_locals};
pub use task::{Join, Task};
pub use threads::{iterate_in_thread, run_in_thread};
pub use time::{Limit, Time};
pub use timeout::{IgnoreAfter, TimeoutAfter, ignore_after, ignore_at, timeout_after, timeout_at};
pub use verbs::{
    Budget, Sleep, budget, budget_from, check_cancellation, clock, current_deadline, current_task,
    remaining, sleep, sleep_from, spend_budget, take_budget, take_pending_from, wall_clock,
    yield_now,
};
