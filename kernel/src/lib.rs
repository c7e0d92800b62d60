//! The kernel of trapline: runs tasks and answers their traps, on one thread.
//!
//! A *turn* is: wait for the machine, arrivals, the wake queue, expired timers, and then exactly
//! the tasks that were ready when that step began, first in, first out. Every decision is an event
//! of the [`trace`].
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
//! What an owner does with a [`Kernel`]: run ([`Kernel::run`], [`Kernel::run_until_quiescent`]),
//! observe ([`Kernel::trace_to`], [`Kernel::task_table`], [`Kernel::jobs`], [`Kernel::counters`],
//! [`Kernel::is_quiescent`]), hear of what happens
//! ([`Kernel::on_signal`], [`Kernel::on_orphan`], [`Kernel::on_stuck`]), hand it to other threads
//! ([`Kernel::remote`]) and end it ([`Kernel::shutdown`]). [`Options`] are what it chooses;
//! [`limits()`] lists every number. The [`guide`] tells how to read the log, and has the five
//! [rules for new code](guide::outside#rules-for-new-code).
//!
//! # How to read the source
//!
//! Read what every trap passes through first:
//!
//! | file | is |
//! |---|---|
//! | `kernel.rs` | what there is |
//! | `turn.rs` | the loop |
//! | `run.rs`, `ready.rs` | how one task runs, and the queue of those that are ready |
//! | `answers.rs`, `completion.rs` | answers for the next poll; how a wait comes true |
//! | `table.rs` | the trap table: what each request does |
//! | `posts.rs` | what tasks tell the kernel without waiting for an answer |
//! | `task.rs`, `waits.rs` | the record of a task, and the waits in it |
//! | `scopes.rs` | the tree of timeouts, guards, branches and shields |
//! | `interrupts.rs`, `delivery.rs` | who is interrupted by a deadline or a cancellation |
//! | `timers.rs` | the timer heap |
//! | `registrations.rs`, `io.rs` | descriptors |
//! | `queues.rs` | lines of waiters, and joins |
//! | `ends.rs` | how a task ends |
//! | `outside/` | what other threads see of the kernel: the wake queue, wakers, [`Remote`] |
//!
//! Then its services: `jobs/` (worker threads), `signals.rs`, `shutdown.rs`, `longrun.rs`,
//! `watchdog.rs`; `view/` (what an owner sees); `log.rs`, `ops.rs` and `trace/` (the log);
//! `machine/` (the world below); `options.rs` and `limits.rs`; [`testing`].
//!
//! What is absent: priorities, preemption, a second thread that runs tasks, a hash map.

#![deny(unsafe_code, unsafe_op_in_unsafe_fn)]

mod answers;
mod completion;
mod delivery;
mod ends;
pub mod guide {
    //! Pages to read: how to [`start`]; how to read a trace, [`reading`]; what the log says of
    //! [`time`], and of what comes from [`outside`], with five rules for new code; what it all
    //! costs, [`speed`]; and which test checks which promise, [`rows`].

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
pub mod testing;
mod timers;
pub mod trace;
mod turn;
mod view;
mod waits;
mod watchdog;

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
