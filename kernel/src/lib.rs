//! The kernel of trapline: runs tasks and answers their traps, on one thread.
//!
//! A *turn* is: wait for the machine, completed I/O, the wake queue, expired deadlines, and then
//! exactly the tasks that were ready when that step began, first in, first out. Every decision is
//! an event of the [`trace`].
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
//! [`Kernel::outstanding`]), hear of what happens ([`Kernel::on_signal`], [`Kernel::on_orphan`],
//! [`Kernel::on_stuck`]), hand it to other threads ([`Kernel::remote`]) and end it
//! ([`Kernel::shutdown`]). [`Options`] are what it chooses; [`limits()`] lists every number. The
//! [`guide`] tells how to read the log, and has the five [rules for new
//! code](guide::outside#rules-for-new-code).
//!
//! Read `kernel.rs` (what there is), `turn.rs` (the loop), `run.rs` (how one task runs), `table.rs`
//! (the trap table), `completion.rs` (how a wait ends), `ends.rs` (how a task does). Then what the
//! table's arms need: `posts.rs`, `yields.rs`, `lines.rs` (joins and queues), `io.rs`
//! (descriptors), `jobs.rs` (threads), `outside.rs` (waits that any thread may end), `scoping.rs`,
//! `outlived.rs`, `delivery.rs`, `unread.rs`, `branches.rs`, `shields.rs` and `bare.rs` (scopes and
//! interrupts), `deadlines.rs` (of connections), `longrun.rs`, `signals.rs`, `shutdown.rs` (the
//! phases); `quiescence.rs` says whether anything can still happen, `view.rs` and `task_table.rs`
//! what there is. The tables that they use are pure structures: `tasks.rs` (of the records in
//! `task.rs`), `ready.rs`, `waits.rs` and `links.rs`, `scopes.rs` (of those in `scope.rs`),
//! `pending.rs`, `timers.rs` and `owner.rs`, `registrations.rs`, `workers.rs` (tokens). Events are
//! made by `emit.rs`, `shown.rs` and `log.rs`, and are in `trace/`. What other threads see is in
//! `wake.rs`, `waker.rs`, `remote.rs`, `threads.rs` and `watchdog.rs`; what the world is, in
//! `machine/`; what can be chosen, in `options.rs` and `limits.rs`. [`testing`] is for the tests of
//! programs; `inject.rs` is all that the kernel does for it.
//!
//! What is absent: priorities, preemption, a second thread that runs tasks, a hash map.

#![deny(unsafe_code, unsafe_op_in_unsafe_fn)]

mod bare;
mod branches;
mod completion;
mod deadlines;
mod delivery;
mod emit;
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
mod io;
mod jobs;
mod kernel;
mod limits;
mod lines;
mod links;
mod log;
mod longrun;
mod machine;
mod options;
mod outlived;
mod outside;
mod owner;
mod pending;
mod posts;
mod quiescence;
mod ready;
mod registrations;
mod remote;
mod run;
mod scope;
mod scopes;
mod scoping;
mod shields;
mod shown;
mod shutdown;
mod signals;
mod table;
mod task;
mod task_table;
mod tasks;
pub mod testing;
mod threads;
mod timers;
pub mod trace;
mod turn;
mod unread;
mod view;
mod waits;
mod wake;
mod waker;
mod watchdog;
mod workers;
mod yields;

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
