//! The kernel of trapline: it runs tasks and answers their traps, on one thread.
//!
//! One pass of the kernel's loop is a *turn*. A turn has five steps: wait for the machine, handle
//! the arrivals, empty the wake queue, fire the due timers, and run the ready tasks. The last step
//! runs each task that was ready when the step began, first in, first out. Due connection deadlines
//! fire before the arrivals. Every decision is an event of the [`trace`].
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
//! [`Kernel::on_stuck`]), give other threads access to it ([`Kernel::remote`]), record a run and
//! run it again ([`Kernel::record_to`], [`Kernel::replay`]), and end it ([`Kernel::shutdown`]).
//! [`Options`] are the settings of a kernel. The [`guide`] explains how to read the log, and has
//! the five [rules for new code](guide::outside#rules-for-new-code).
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `trace` | on | the events of the log; without it, the log has only its warnings |
//!
//! # Systems
//!
//! [`Real`], [`main()`], [`run()`], and what records a run or runs it again exist on Linux, macOS
//! and FreeBSD only. On Windows and in WebAssembly a kernel runs on [`Sim`].
//!
//! # How to read the source
//!
//! The README has the reading order. The first reading is a kernel: `core/` in both crates. A wait
//! is one record at the gate, from the poll that files its trap to the poll that reads its result.
//! A scope is one record too, from its opening to its close. The kernel keeps no copy of either.
//! The files that every trap passes through, in `core/`:
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | the `Core`: its fields, and its calls to the services |
//! | `sched.rs` | the scheduler: tasks, ready queue, run, log |
//! | `turn.rs` | the loop |
//! | `run.rs` | one run of a task: poll it, and serve what it has filed |
//! | `dispatch.rs` | the trap table; messages that need no reply |
//! | `waits.rs` | the end of a wait with a reply; wakers; queues of waits |
//! | `ends.rs` | the end of a wait or a task whose future is gone |
//! | `tasks.rs` | the tasks, and the queue of those that are ready |
//! | `timers.rs` | the timer heap |
//!
//! The second reading is what may end a wait early, and the third what the log is told. Then come
//! the parts, the services above the core, and the files around it:
//!
//! | file | content |
//! |---|---|
//! | `interrupts.rs` | how an interrupt reaches a wait |
//! | `check.rs` | the invariants, as code that tests call |
//! | `log/lines.rs` | the lines that the core writes |
//! | `parts/io.rs` | descriptors: registrations, waits and arrivals |
//! | `parts/wakers.rs` | the wakers of tasks, and the messages of other threads |
//! | `parts/wakes.rs`, `wake_queue.rs` | the kernel's own task, which takes these messages |
//! | `parts/deadlines.rs` | the scan of the deadline table |
//! | `parts/longrun.rs`, `sweep.rs` | runs that are too long; the hook for tests |
//! | `services/mod.rs` | the services together, as the core calls them |
//! | `services/threads.rs` | jobs, their admission, and worker threads |
//! | `services/signals.rs`, `remote.rs` | the delivery of signals; requests of other threads |
//! | `services/shutdown.rs`, `watchdog.rs` | the state of a shutdown; reports of long runs |
//! | `kernel.rs` | the [`Kernel`] as its owner sees it; its shutdown, by phases |
//! | `record.rs` | kernels that record a run, or run a record again |
//! | `options.rs` | the options of a kernel; its fixed limits |
//! | `view.rs` | the views of an owner: counters, the task table, quiescence |
//! | `log/` | events, their text, their causes, and their observers |
//! | `machine/` | the system, the simulation, a system with a tape; `sys.rs` has all unsafe code |
//!
//! The kernel has no priorities, no preemption, no second thread that runs tasks, no hash map, and
//! no parser of the log.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code, unsafe_op_in_unsafe_fn)]
// What only the machine of the operating system uses.
#![cfg_attr(not(unix), allow(dead_code, unused_imports))]

mod check;
pub(crate) mod core;
pub mod guide {
    //! The guide. [`start`]: a first program. [`reading`]: how to read a trace. [`time`]: sleeps,
    //! timeouts and cancellation. [`outside`]: threads, signals and shutdown, with five rules for
    //! new code. [`replay`]: how to record a run and run it again. [`flight`]: the last lines of
    //! the log, after something went wrong. [`libraries`]: axum, Redis, WebSockets and others, and
    //! what cannot run. [`tls`]: HTTP, frames and hyper over TLS. [`recipes`]: short solutions
    //! built from the other parts. [`speed`]: the cost of each operation. [`rows`]: each promise
    //! with its tests. [`curio`]: Curio's own tests, case by case. [`design`]: the designs that the
    //! core has had.

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
    pub mod replay {
        #![doc = include_str!("guide/replay.md")]
    }
    pub mod flight {
        #![doc = include_str!("guide/flight.md")]
    }
    pub mod libraries {
        #![doc = include_str!("guide/libraries.md")]
    }
    pub mod tls {
        #![doc = include_str!("guide/tls.md")]
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
    pub mod design {
        #![doc = include_str!("guide/design.md")]
    }
}
mod interrupts;
mod kernel;
mod log;
mod machine;
mod options;
mod parts;
mod record;
mod services;
pub mod trace {
    //! The log: events as types and as text.
    //!
    #![doc = include_str!("log/grammar.md")]

    pub use crate::log::event::{
        After, Alias, Answered, Arrival, Effect, Event, Exit, Line, LoggedPrimitive, LoggedSite,
        LoggedWait, Moved, Need, Op, Outcome, Parent, Phase, Reg, Seq, Stop, Timed, Timer, Why,
        header, listed,
    };
    pub use crate::log::form::{Span, Text};
}
mod view;

pub use kernel::Kernel;
#[cfg(unix)]
pub use kernel::{main, run};
pub use log::Activation;
pub use log::flight::{Dump, Flight};
pub use machine::{JobView, Machine, Sim, SimClock};
#[cfg(unix)]
pub use machine::{Real, Taped};
pub use options::{Options, Policy, RunError};
pub use parts::sweep::{Injected, TrapSeen};
#[cfg(unix)]
pub use record::{Record, recorded_command, recorded_program};
pub use services::remote::{Remote, RemoteTask};
pub use services::threads::Orphan;
pub use services::watchdog::Stuck;
pub use view::{Counters, Outstanding, ParkedView, TaskTable, TaskView};
