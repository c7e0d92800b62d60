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
//! What an owner does with a [`Kernel`]: run ([`Kernel::run`], [`Kernel::run_until_quiescent`],
//! [`Kernel::turn_once`]), observe ([`Kernel::trace_to`], [`Kernel::task_table`],
//! [`Kernel::jobs`], [`Kernel::counters`], [`Kernel::outstanding`]), hear of what happens
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
//! | `wake.rs`, `wakeup.rs`, `waker.rs` | what other threads see of the kernel |
//!
//! Then its services: `jobs.rs`, `tokens.rs` and `threads.rs` (worker threads), `signals.rs`,
//! `shutdown.rs`, `remote.rs`, `longrun.rs`, `watchdog.rs`; `quiescence.rs`, `view.rs` and
//! `task_table.rs` (what an owner sees); `log.rs`, `ops.rs` and `trace/` (the log); `machine/` (the
//! world below); `options.rs` and `limits.rs`; [`testing`] and `inject.rs`.
//!
//! What is absent: priorities, preemption, a second thread that runs tasks, a hash map.

#![deny(unsafe_code, unsafe_op_in_unsafe_fn)]

mod answers;
mod completion;
mod delivery;
mod ends;
pub mod guide {
    //! Pages to read: what the log says of [`time`], and of what comes from [`outside`] with the
    //! five rules for new code; what it all costs, [`speed`]; and which test holds which of the
    //! [`rows`].

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
mod inject;
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
mod posts;
mod queues;
mod quiescence;
mod ready;
mod registrations;
mod remote;
mod run;
mod scopes;
mod shutdown;
mod signals;
mod table;
mod task;
mod task_table;
pub mod testing;
mod threads;
mod timers;
mod tokens;
pub mod trace;
mod turn;
mod view;
mod waits;
mod wake;
mod waker;
mod wakeup;
mod watchdog;

pub use jobs::{JobView, Orphan};
pub use kernel::{Kernel, run};
pub use limits::limits;
pub use log::Activation;
pub use machine::{Machine, Real, Sim, SimClock, raise_descriptor_limit};
pub use options::{Error, Options};
pub use quiescence::Outstanding;
pub use registrations::Policy;
pub use remote::{Remote, RemoteError, RemoteTask};
pub use task_table::TaskTable;
pub use view::{Counters, ParkedView, TaskView};
pub use watchdog::Stuck;
