//! The kernel of trapline: runs tasks and answers their traps, on one thread.
//!
//! A *turn* has five steps: wait for the machine, handle arrivals, empty the wake queue, fire the
//! timers that are due, and run each task that was ready when this last step began, first in, first
//! out. Connection deadlines that are due fire before the arrivals. Every decision is an event of
//! the [`trace`].
//!
//! ```
//! use std::time::Duration;
//!
//! let mut kernel = kernel::Kernel::new(kernel::Sim::new());
//! let both = kernel.run(async {
//!     let mut child = traps::spawn("child", traps::sleep(Duration::from_secs(1))).await;
//!     traps::sleep(Duration::from_secs(2)).await.unwrap();
//!     child.join().await.unwrap()
//! });
//! assert_eq!(both.unwrap().unwrap().as_micros(), 1_000_000);
//! ```
//!
//! The owner of a [`Kernel`] can run it ([`Kernel::run`], [`Kernel::run_until_quiescent`]), observe
//! it ([`Kernel::trace_to`], [`Kernel::task_table`], [`Kernel::jobs`], [`Kernel::counters`],
//! [`Kernel::is_quiescent`]), install hooks ([`Kernel::on_signal`], [`Kernel::on_orphan`],
//! [`Kernel::on_stuck`]), give other threads access to it ([`Kernel::remote`]) and end it
//! ([`Kernel::shutdown`]). [`Options`] are the settings of a kernel; [`limits()`] lists every
//! number. The [`guide`] explains how to read the log, and has the five [rules for new
//! code](guide::outside#rules-for-new-code).
//!
//! # How to read the source
//!
//! First read the files that every trap passes through:
//!
//! | file | is |
//! |---|---|
//! | `kernel.rs` | the `Kernel`: its fields, and how its owner builds and ends it |
//! | `turn.rs` | the loop |
//! | `run.rs`, `ready.rs` | how one task runs, and the queue of ready tasks |
//! | `answers.rs`, `completion.rs` | answers for the next poll; how a wait completes |
//! | `table.rs` | the trap table: what each request does |
//! | `posts.rs` | messages of tasks that need no answer |
//! | `task.rs`, `waits.rs` | the record of a task, and its waits |
//! | `scopes.rs` | the tree of timeouts, guards, branches and shields |
//! | `interrupts.rs`, `delivery.rs` | which waits a deadline or a cancellation ends |
//! | `timers.rs` | the timer heap |
//! | `registrations.rs`, `io.rs` | descriptors |
//! | `queues.rs` | queues of waiters, and joins |
//! | `ends.rs` | how a task ends |
//! | `outside/` | what other threads can use: the wake queue, wakers, [`Remote`] |
//!
//! Then read its services: `jobs/` (worker threads), `signals.rs`, `shutdown.rs`, `longrun.rs`,
//! `watchdog.rs`; `view/` (what an owner can observe); `log/` and `ops.rs` (the log); `machine/`
//! (Linux and the simulation); `options.rs` and `limits.rs`; `hook.rs` (how a test interrupts a
//! program).
//!
//! Not here: priorities, preemption, a second thread that runs tasks, a hash map, a parser of the
//! log.

#![deny(unsafe_code, unsafe_op_in_unsafe_fn)]

mod answers;
mod completion;
mod delivery;
mod ends;
pub mod guide {
    //! The guide. [`start`]: a first program. [`reading`]: how to read a trace. [`time`]: sleeps,
    //! timeouts and cancellation. [`outside`]: threads, signals and shutdown, with five rules for
    //! new code. [`speed`]: what each operation costs. [`rows`]: each promise with its tests.

    pub mod start {
        #![doc = include_str!("guide/start.md")]
    }
    pub mod reading {
        #![doc = include_str!("guide/reading.md")]
    }
    pub mod time {
        #![doc = include_str!("guide/time.md")]
    }
    pub mod outside {
        #![doc = include_str!("guide/outside.md")]
    }
    pub mod speed {
        #![doc = include_str!("guide/speed.md")]
    }
    pub mod rows {
        #![doc = include_str!("guide/rows.md")]
    }
}
mod hook;
mod interrupts;
mod io;
mod jobs;
mod kernel;
mod limits;
mod log;
mod longrun;
mod machine;
mod ops;
mod options;
mod outside;
mod posts;
mod queues;
mod ready;
mod registrations;
mod run;
mod scopes;
mod shutdown;
mod signals;
mod table;
mod task;
mod timers;
pub mod trace {
    //! The log: what happened, as types and as text.
    //!
    #![doc = include_str!("log/grammar.md")]

    pub use crate::log::event::{Answered, Event, Seq, Text};
    pub use crate::log::line::{Line, Timed, header, listed};
    pub use crate::log::op::{
        After, Arrival, Effect, Exit, Need, Op, Outcome, Phase, Reg, Timer, WakeOp, Why,
    };
    pub use crate::log::place::{Alias, Site, Stop};
    pub use crate::log::words::Span;
}
mod turn;
mod view;
mod waits;
mod watchdog;

pub use hook::{Injected, Trap};
pub use jobs::{JobView, Orphan};
pub use kernel::{Kernel, run};
pub use limits::limits;
pub use log::Activation;
pub use machine::{Machine, Real, Sim, SimClock, raise_descriptor_limit};
pub use options::{Error, Options};
pub use outside::{Remote, RemoteError, RemoteTask};
pub use registrations::Policy;
pub use view::{Counters, Outstanding, ParkedView, TaskTable, TaskView};
pub use watchdog::Stuck;
