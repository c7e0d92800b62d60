//! The trap protocol of trapline: everything that a task may ask of a kernel. How a kernel answers
//! is not part of this crate.
//!
//! A task is an ordinary [`Future`]. At the bottom of every chain of awaits is a hand-written
//! future that files one [`Request`](protocol::Request) at the [`gate`] and returns `Pending`. The
//! kernel answers the request, and the next poll takes the answer. A request either **answers**
//! (the task is polled again at once) or **blocks** (the task leaves the CPU until the answer
//! exists). A blocking trap can end early with an [`Interrupt`]. A trap that returned an interrupt
//! has done nothing.
//!
//! Read in this order: [`protocol`] (what can be asked), [`gate`] (how requests and answers
//! travel), `call.rs` (the one future that traps), then any verb: [`sleep()`], [`spawn()`],
//! [`timeout_after`].
//!
//! | for | there is |
//! |---|---|
//! | time | [`sleep()`], [`timeout_after`], [`shield`], [`ConnectionDeadline`], [`cancellable()`] |
//! | tasks | [`spawn()`], [`TaskGroup`], [`join`], [`race`], [`foreign()`], [`TaskLocal`] |
//! | other tasks | [`WaitQueue`], [`sync`] |
//! | work that blocks | [`run_in_thread()`], [`iterate_in_thread()`], [`threads::Limiter`] |
//! | too much work | [`admission::Limit`] |
//! | other threads | [`universal`]: a queue and an event; [`outside()`], the trap below them |
//! | descriptors | [`io`] |
//! | the process | [`signals()`], [`wait_signal`]; [`shutdown`], the shutdown as tasks see it |
//! | every number | [`limits`](limits::limits) |
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
mod call;
mod cancellable;
mod combine;
pub mod deadline;
mod error;
mod fallback;
mod foreign;
pub mod gate;
mod group;
mod interrupt;
pub mod io;
pub mod limits;
pub mod outside;
pub mod protocol;
mod scope;
pub mod shutdown;
mod signal;
pub mod sync;
mod task;
pub mod threads;
pub mod time;
mod timeout;
pub mod universal;
mod verbs;
mod watchdog;

pub use cancellable::{NotStarted, cancellable};
pub use combine::{Either, Join2, JoinAll, Race, join, join_all, race};
pub use deadline::{ConnectionDeadline, Guard, TaskGuard, connection_deadline};
pub use error::{Error, JoinError};
pub use fallback::{DefaultTimeout, fallback_after};
pub use foreign::{Foreign, foreign};
pub use group::{GroupError, Member, TaskGroup};
pub use interrupt::{Delivery, Interrupt, Interruptible, Kind};
pub use outside::{OutsideWaker, WaitOutside, outside};
pub use scope::{Branch, Shield, branch, shield};
pub use signal::{Signal, SignalSet, Signals, signals, wait_signal};
pub use sync::{Wait, WaitQueue};
pub use task::local::{InheritedLocal, TaskLocal, any_locals, drop_locals, inherit_locals};
pub use task::spawn::{Spawn, SpawnDetached, spawn};
pub use task::{Join, Task, TaskId};
pub use threads::{iterate_in_thread, run_in_thread};
pub use time::Time;
pub use timeout::{IgnoreAfter, TimeoutAfter, ignore_after, ignore_at, timeout_after, timeout_at};
pub use verbs::{
    Budget, Sleep, budget, budget_from, check_interrupt, check_interrupt_from, clock,
    current_deadline, current_task, held_interrupt, is_traced, note_cap, note_warning, remaining,
    sleep, sleep_from, spend_budget, take_budget, wall_clock, yield_now,
};
pub use watchdog::{IdleWatchdog, idle_watchdog};
