//! The core of the kernel: tasks, waits, scopes, timers, descriptors, queues, the wake queue.
//!
//! The core has no thread pool, no signal handling and no shutdown. These are above it, in
//! `services`, and reach it through the methods of [`Core`] and [`Sched`].
//!
//! | file | is |
//! |---|---|
//! | `turn.rs` | the loop |
//! | `run.rs` | how one task runs |
//! | `dispatch.rs` | the trap table; the table of posts |
//! | `sched.rs` | the scheduler, which nearly every step works on |
//! | `waits.rs` | how a wait ends with a reply |
//! | `tasks.rs` | the tasks, and the queue of those that are ready |
//! | `timers.rs` | the timer heap |
//! | `ends.rs` | what ends because its future is gone: a wait, a task |
//!
//! [`Core`] is the scheduler ([`Sched`]) and the parts. A part gets the scheduler as an argument,
//! and has no methods on `Core`. So `Core` keeps the steps that change several parts: a turn, a
//! run, the trap table, interrupts and ends. How an interrupt reaches a wait is in
//! `kernel/src/interrupts.rs`, the second reading.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use traps::internal::gate::{Claim, Gate, Shared, new_epoch};
use traps::internal::protocol::ServicePost;
use traps::internal::table::TaskIndex;
use traps::{Signal, Time};

use crate::machine::{Arrivals, Machine, keep_statuses};
use crate::options::Options;
use crate::parts::deadlines::Scans;
use crate::parts::io::Handles;
use crate::parts::longrun::Longrun;
use crate::parts::sweep::TrapHook;
use crate::parts::wake_queue::WakeQueue;
use crate::parts::wakers::{Inbox, Message, SpareWaker};
use crate::parts::wakes::Wakeup;
use sched::Sched;
use timers::{ServiceTimer, Timers};

pub(crate) mod dispatch;
mod ends;
mod run;
pub(crate) mod sched;
pub(crate) mod tasks;
pub(crate) mod timers;
pub(crate) mod turn;
pub(crate) mod waits;

/// The part of a kernel's state that a turn needs.
pub(crate) struct Core<M: Machine> {
    pub(crate) options: Options,
    /// The scheduler: the machine, the tasks, which of them runs or is ready, and the log.
    pub(crate) sched: Sched<M>,
    /// The timer heap.
    pub(crate) timers: Timers,
    /// The descriptors that tasks wait for.
    pub(crate) handles: Handles,
    /// The kernel's own task, which handles the messages of other threads.
    pub(crate) wakeup: Wakeup,
    /// The scans of the table of connection deadlines. These are not in the timer heap, because a
    /// server moves each one with every request, and a store in a table is cheaper.
    pub(crate) scans: Scans,
    /// The waker for the polls of tasks that have no waker of their own.
    pub(crate) spare: SpareWaker,
    /// The reports of runs that take too long.
    pub(crate) longrun: Longrun,
    /// The turns that have not asked the machine for arrivals.
    pub(crate) skipped: Skipped,
    /// The hook for tests, which sees each trap before its dispatch.
    pub(crate) hook: TrapHook,
    /// The number of waits on the machine so far.
    pub(crate) machine_waits: u64,
    /// The time by which a wait of the machine must end even if no timer is due. Set by
    /// `run_until_quiescent`.
    pub(crate) bound: Option<Time>,
    /// The number of threads with a job. Each may still send a message, so a virtual clock does not
    /// jump while this is not 0.
    pub(crate) busy_threads: usize,
    pub(crate) main_ended: bool,
    /// Whether main has ended by a cancellation, or was dropped.
    pub(crate) main_was_cut: bool,
    /// The payload of main's panic, until the run ends.
    pub(crate) main_panic: Option<Box<dyn Any + Send>>,
    // A buffer that is used again, so that no turn allocates.
    pub(crate) arrivals: Arrivals,
    /// The kernel's claim to its thread, which no other kernel can have at the same time. Dropped
    /// last.
    _claim: Claim,
}

/// The services above the core. The core calls them for every event that is not its own.
pub(crate) trait Services<M: Machine> {
    /// Handles a signal of the process.
    fn signal(&mut self, core: &mut Core<M>, signal: Signal);
    /// Handles a message of another thread.
    fn message(&mut self, core: &mut Core<M>, message: Message);
    /// Handles a timer of a service that is due.
    fn timer(&mut self, core: &mut Core<M>, timer: ServiceTimer, deadline: Time);
    /// Handles a post of a task to a service.
    fn post(&mut self, core: &mut Core<M>, post: ServicePost);
    /// Returns whether a service watches each run.
    fn watches(&self) -> bool;
    /// Handles the beginning of a watched run of the task at this index.
    fn run_begins(&mut self, core: &Core<M>, task: TaskIndex);
    /// Handles the end of a watched run.
    fn run_ends(&mut self);
}

/// The function that polls the future of main.
pub(crate) type MainPoll<'a> = &'a mut dyn FnMut(&mut Context<'_>) -> Poll<()>;

impl<M: Machine> Core<M> {
    pub(crate) fn new(machine: M, options: Options) -> Core<M> {
        let options = options.in_bounds(machine.tick());
        let gate = Gate::of_this_thread();
        let epoch = new_epoch();
        let inbox = Inbox { epoch, queue: Arc::new(WakeQueue::new(machine.bell())) };
        let (clock, wall) = (Box::new(machine.thread_clock()), machine.wall_clock());
        let outside = Arc::new(inbox.clone());
        let shared = Rc::new(Shared::new(epoch, clock, wall, keep_statuses, outside));
        let claim = gate.claim(&shared);
        Core {
            sched: Sched::new(machine, gate, shared),
            timers: Timers::default(),
            handles: Handles::new(options.policy),
            spare: SpareWaker::new(&inbox),
            wakeup: Wakeup::new(inbox),
            scans: Scans::new(options.tick_in_force()),
            longrun: Longrun::new(options.longrun),
            skipped: Skipped::default(),
            hook: TrapHook::default(),
            machine_waits: 0,
            bound: None,
            busy_threads: 0,
            main_ended: false,
            main_was_cut: false,
            main_panic: None,
            arrivals: Arrivals::default(),
            options,
            _claim: claim,
        }
    }
}

/// The turns since the kernel last asked the machine for arrivals.
#[derive(Default)]
pub(crate) struct Skipped {
    pub(super) turns: u32,
    /// The reading of the machine's cheap clock before the first run after the kernel last asked
    /// for arrivals.
    pub(super) since: u64,
}
