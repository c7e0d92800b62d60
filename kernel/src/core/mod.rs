//! The core of the kernel: tasks, waits, scopes, timers, descriptors, queues, the wake queue.
//!
//! The core knows no thread pool, no signal handling, no shutdown and no test. These are above it,
//! in `services`, and reach it through the methods of [`Core`].
//!
//! | file | is |
//! |---|---|
//! | `turn.rs` | the loop |
//! | `run.rs` | how one task runs |
//! | `dispatch.rs` | the trap table; messages that need no reply |
//! | `waits.rs` | how a wait ends: with a reply, by an interrupt, or withdrawn |
//! | `interrupts.rs` | how an interrupt reaches a wait |
//! | `tasks.rs` | the table of tasks; how a task ends |
//! | `timers.rs` | the timer heap |

use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use traps::internal::gate::{Claim, Gate, Shared, new_epoch};
use traps::internal::protocol::ServicePost;
use traps::internal::table::{Direction, HandleId, TaskRef};
use traps::parts::deadlines::Due;
use traps::{Signal, Time};

use crate::log::Log;
use crate::machine::{Arrivals, Machine, keep_statuses};
use crate::options::Options;
use crate::parts::io::Handles;
use crate::parts::longrun::Longrun;
use crate::parts::sweep::Hook;
use crate::parts::wake_queue::WakeQueue;
use crate::parts::wakes::{Inbox, Message, SpareWaker, Wakeup};
use crate::view::Counters;
use run::Run;
use tasks::Tasks;
use timers::{Service, Timers};
use turn::{ReadyQueue, Skipped};

pub(crate) mod dispatch;
mod interrupts;
mod run;
pub(crate) mod tasks;
pub(crate) mod timers;
pub(crate) mod turn;
pub(crate) mod waits;

/// The part of a kernel's state that a turn needs.
pub(crate) struct Core<M: Machine> {
    pub(crate) machine: M,
    pub(crate) options: Options,
    pub(crate) gate: &'static Gate,
    pub(crate) shared: Rc<Shared>,
    /// The last reading of the clock.
    pub(crate) now: Time,
    pub(crate) turn: u64,
    pub(crate) log: Log,
    pub(crate) tasks: Tasks,
    pub(crate) ready: ReadyQueue,
    pub(crate) timers: Timers,
    pub(crate) handles: Handles,
    pub(crate) inbox: Inbox,
    pub(crate) spare: SpareWaker,
    pub(crate) wakeup: Wakeup,
    /// The state of the run of the task on the CPU.
    pub(crate) run: Run,
    pub(crate) longrun: Longrun,
    pub(crate) skipped: Skipped,
    pub(crate) hook: Hook,
    /// The counters of events.
    pub(crate) counts: Counters,
    /// The time of the last scan of the deadline table.
    pub(crate) scanned: Time,
    /// The time by which a wait of the machine must end even if no timer is due. Set by
    /// `run_until_quiescent`.
    pub(crate) bound: Option<Time>,
    /// The number of waits that something outside the kernel will end.
    pub(crate) external: usize,
    /// The number of threads with a job. They may ring, and a virtual clock stands still for them.
    pub(crate) busy_threads: usize,
    /// The number of queues that the log has numbered.
    pub(crate) queues: u64,
    /// The log's numbers for the queues of objects shared with threads, by the number of the object
    /// in the process.
    pub(crate) universal: BTreeMap<u32, u64>,
    /// The waits that guards have ended in this turn: descriptor, direction, task and scope. If
    /// such a descriptor turns out to be ready, the log has a `race` line.
    pub(crate) guarded: Vec<(HandleId, Direction, u32, u64)>,
    pub(crate) main_ended: bool,
    /// The payload of main's panic, until the run ends.
    pub(crate) main_panic: Option<Box<dyn Any + Send>>,
    // Buffers that are used again, so that no turn allocates.
    pub(crate) arrivals: Arrivals,
    pub(crate) due: Vec<Due>,
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
    fn timer(&mut self, core: &mut Core<M>, timer: Service, deadline: Time);
    /// Handles a post of a task to a service.
    fn post(&mut self, core: &mut Core<M>, post: ServicePost);
    /// Returns whether a service watches each run.
    fn watches(&self) -> bool;
    /// Handles the beginning of a watched run of the task at this index.
    fn run_begins(&mut self, core: &Core<M>, task: u32);
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
        let clock = machine.thread_clock();
        let (clock, wall) = (Box::new(clock), machine.wall_clock());
        let outside = Arc::new(inbox.clone());
        let shared = Rc::new(Shared::new(epoch, clock, wall, keep_statuses, outside));
        let claim = gate.claim(&shared);
        Core {
            gate,
            shared,
            now: Time::ZERO,
            turn: 0,
            log: Log::default(),
            tasks: Tasks::default(),
            ready: ReadyQueue::default(),
            timers: Timers::default(),
            handles: Handles::default(),
            spare: SpareWaker::new(&inbox),
            inbox,
            wakeup: Wakeup::default(),
            run: Run::default(),
            longrun: Longrun::new(options.longrun),
            skipped: Skipped::default(),
            hook: Hook::default(),
            counts: Counters::default(),
            scanned: Time::ZERO,
            bound: None,
            external: 0,
            busy_threads: 0,
            queues: 0,
            universal: BTreeMap::new(),
            guarded: Vec::new(),
            main_ended: false,
            main_panic: None,
            arrivals: Arrivals::default(),
            due: Vec::new(),
            machine,
            options,
            _claim: claim,
        }
    }

    /// Returns the index of a task, or `None` if it has ended.
    pub(crate) fn find(&self, task: TaskRef) -> Option<u32> {
        let index = self.gate.records().scopes.get(task)?.task;
        self.tasks.has(index, task).then_some(index)
    }
}
