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
//! ([`Kernel::shutdown`]). [`Options`] are the settings of a kernel. The [`guide`] explains how
//! to read the log, and has the five [rules for new code](guide::outside#rules-for-new-code).
//!
//! # How to read the source
//!
//! Read `traps/src/core/` first: a wait is one record there, from the poll that files its trap to
//! the poll that reads its result, and a scope is one record from its opening to its close. The
//! kernel keeps no copy of either. Then read the files that every trap passes through. They are in
//! `core/`:
//!
//! | file | is |
//! |---|---|
//! | `mod.rs` | the `Core`: its fields, and what it asks of the services above it |
//! | `turn.rs`, `ready.rs` | the loop; the queue of ready tasks |
//! | `run.rs` | how one task runs: it is polled, and what it has filed is served |
//! | `table.rs`, `posts.rs` | the trap table; messages that need no reply |
//! | `waits.rs` | how a wait ends: with a reply, or withdrawn |
//! | `tasks.rs`, `ends.rs` | the table of tasks; how a task ends |
//! | `timers.rs` | the timer heap |
//! | `interrupts.rs` | which waits a deadline or a cancellation ends; its head has the rule |
//! | `queues.rs` | queues of waits, in which joins and signals wait too |
//! | `io.rs`, `handles.rs` | descriptors: waits and arrivals; handles and registrations |
//! | `wake_queue.rs`, `wakers.rs`, `wakeup.rs` | what other threads can use; task 1 |
//! | `words.rs`, `longrun.rs`, `hook.rs` | waits in the words of the log; long runs; tests |
//!
//! Then read what stands above the core, and around it:
//!
//! | file | is |
//! |---|---|
//! | `services/mod.rs` | the services together: where the core calls them |
//! | `services/threads.rs`, `tokens.rs`, `pool.rs` | jobs, which of them may run, worker threads |
//! | `services/signals.rs`, `remote.rs` | who gets a signal; what other threads may ask for |
//! | `services/shutdown.rs`, `watchdog.rs` | the state of a shutdown; the thread that looks on |
//! | `kernel.rs`, `phases.rs` | the [`Kernel`] as its owner sees it; its shutdown, by phases |
//! | `options.rs`, `limits.rs` | the settings of a kernel; numbers that are no settings |
//! | `view/` | what an owner can observe: counters, the table of tasks, quiescence |
//! | `log/` | events, their text, and who listens |
//! | `machine/` | Linux and the simulation; `sys.rs` has all the unsafe code |
//!
//! Not here: priorities, preemption, a second thread that runs tasks, a hash map, a parser of the
//! log.

#![deny(unsafe_code, unsafe_op_in_unsafe_fn)]

pub(crate) mod core;
pub mod guide {
    //! The guide. [`start`]: a first program. [`reading`]: how to read a trace. [`time`]: sleeps,
    //! timeouts and cancellation. [`outside`]: threads, signals and shutdown, with five rules for
    //! new code. [`recipes`]: what is a few lines over the rest. [`speed`]: what each operation
    //! costs. [`rows`]: each promise with its tests. [`curio`]: Curio's own tests, case by case.

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
    pub mod recipes {
        #![doc = include_str!("guide/recipes.md")]
    }
    pub mod speed {
        #![doc = include_str!("guide/speed.md")]
    }
    pub mod rows {
        #![doc = include_str!("guide/rows.md")]
    }
    pub mod curio {
        #![doc = include_str!("guide/curio.md")]
    }
}
mod kernel;
mod limits;
mod log;
mod machine;
mod options;
mod phases;
mod services;
pub mod trace {
    //! The log: what happened, as types and as text.
    //!
    #![doc = include_str!("log/grammar.md")]

    pub use crate::log::event::{Answered, Event};
    pub use crate::log::line::{Line, Timed, header, listed};
    pub use crate::log::op::{
        After, Arrival, Effect, Exit, Need, Op, Outcome, Phase, QueueOp, Reg, Timer, WakeOp, Why,
    };
    pub use crate::log::place::{Alias, Primitive, Seq, Site, Stop};
    pub use crate::log::words::{Span, Text};
}
mod view;

pub use core::handles::Policy;
pub use core::hook::{Injected, Trap};
pub use kernel::{Kernel, run};
pub use log::Activation;
pub use machine::{JobView, Machine, Real, Sim, SimClock, raise_descriptor_limit};
pub use options::{Error, Options};
pub use services::remote::{Remote, RemoteTask};
pub use services::threads::Orphan;
pub use services::watchdog::Stuck;
pub use view::{Counters, Outstanding, ParkedView, TaskTable, TaskView};
