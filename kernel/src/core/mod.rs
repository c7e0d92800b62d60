//! The core of the kernel: tasks, waits, scopes, timers, descriptors, queues, the wake queue.
//!
//! It knows no thread pool, no signal handling, no shutdown and no test. These stand above it, in
//! `services`, and reach it through the methods of [`Core`].
//!
//! | file | is |
//! |---|---|
//! | `turn.rs` | the loop |
//! | `run.rs` | how one task runs |
//! | `table.rs`, `posts.rs` | the trap table; messages that need no reply |
//! | `waits.rs` | how a wait ends: with a reply, or withdrawn |
//! | `interrupts.rs` | which waits a deadline or a cancellation ends |
//! | `tasks.rs`, `ends.rs`, `ready.rs` | the table of tasks, how a task ends, who is ready |
//! | `timers.rs` | the timer heap |
//! | `io.rs`, `handles.rs` | descriptors |
//! | `queues.rs` | queues of waits |
//! | `wake_queue.rs`, `wakers.rs`, `wakeup.rs` | what other threads can use; task 1 |
//! | `longrun.rs`, `words.rs` | runs that are too long; waits in the words of the log |
//! | `hook.rs`, `injection.rs` | the hook for tests |
//! | `state.rs` | small records of these files |

use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use traps::core::deadlines::Due;
use traps::core::gate::{Gate, Shared};
use traps::core::names::{Direction, HandleId, TaskRef};
use traps::core::protocol::ServicePost;
use traps::{Signal, Time};

use crate::log::Log;
use crate::machine::{Arrivals, Machine};
use crate::options::Options;
use crate::trace::Seq;
use crate::view::Counters;
use handles::Handles;
use ready::ReadyQueue;
use state::{Longrun, Run, Skipped, Wakeup};
use tasks::Tasks;
use timers::{Service, Timers};
use wake_queue::WakeQueue;
use wakers::{Inbox, Message, SpareWaker};

pub(crate) mod ends;
pub(crate) mod handles;
pub(crate) mod hook;
mod injection;
pub(crate) mod interrupts;
pub(crate) mod io;
pub(crate) mod longrun;
pub(crate) mod posts;
pub(crate) mod queues;
pub(crate) mod ready;
pub(crate) mod run;
pub(crate) mod state;
pub(crate) mod table;
pub(crate) mod tasks;
pub(crate) mod timers;
pub(crate) mod turn;
pub(crate) mod waits;
pub(crate) mod wake_queue;
pub(crate) mod wakers;
pub(crate) mod wakeup;
pub(crate) mod words;

/// Everything that a turn needs.
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
    /// The task that runs.
    pub(crate) run: Run,
    pub(crate) longrun: Longrun,
    pub(crate) skipped: Skipped,
    pub(crate) hook: hook::Hook,
    /// Events that are counted as they happen.
    pub(crate) counts: Counters,
    /// The last scan of the deadline table.
    pub(crate) scanned: Time,
    /// A time at which a wait of the machine has to end although no timer is due. Set by
    /// `run_until_quiescent`.
    pub(crate) bound: Option<Time>,
    /// How many waits something outside the kernel will end.
    pub(crate) external: usize,
    /// How many threads have a job: they may ring, and a virtual clock stands still.
    pub(crate) busy_threads: usize,
    /// How many queues the log has numbered.
    pub(crate) queues: u64,
    /// What is shared with threads: its number in the process, and in the log.
    pub(crate) universal: BTreeMap<u32, u64>,
    /// Waits that guards have ended in this turn: descriptor, direction, task and scope.
    pub(crate) guarded: Vec<(HandleId, Direction, u32, u64)>,
    pub(crate) main_ended: bool,
    /// The panic of main, until the run ends.
    pub(crate) main_panic: Option<Box<dyn Any + Send>>,
    // Buffers that are used again, so that no turn allocates.
    pub(crate) arrivals: Arrivals,
    pub(crate) due: Vec<Due>,
}

/// What stands above the core. The core calls it where something comes that is not its own.
pub(crate) trait Services<M: Machine> {
    /// A signal of the process has arrived.
    fn signal(&mut self, core: &mut Core<M>, signal: Signal);
    /// Another thread has sent this.
    fn message(&mut self, core: &mut Core<M>, message: Message, run: Seq);
    /// A timer that a service has set is due.
    fn timer(&mut self, core: &mut Core<M>, timer: Service, deadline: Time);
    /// A task has posted this.
    fn post(&mut self, core: &mut Core<M>, post: ServicePost);
    /// Whether somebody watches each run.
    fn watches(&self) -> bool;
    /// A watched run begins, of the task in that place.
    fn run_begins(&mut self, core: &Core<M>, task: u32);
    /// It is over.
    fn run_ends(&mut self);
}

/// Main's future as the loop polls it.
pub(crate) type MainPoll<'a> = &'a mut dyn FnMut(&mut Context<'_>) -> Poll<()>;

impl<M: Machine> Core<M> {
    pub(crate) fn new(machine: M, options: Options) -> Core<M> {
        let options = options.in_bounds(machine.tick());
        let gate = Gate::of_this_thread();
        let epoch = gate.open();
        let inbox = Inbox { epoch, queue: Arc::new(WakeQueue::new(machine.bell())) };
        let clock = machine.thread_clock();
        let (clock, wall) = (Box::new(clock), machine.wall_clock());
        let shared = Shared::new(epoch, clock, wall, Arc::new(inbox.clone()));
        Core {
            gate,
            shared: Rc::new(shared),
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
            hook: hook::Hook::default(),
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
        }
    }

    /// The place of a task, if it has not ended.
    pub(crate) fn find(&self, task: TaskRef) -> Option<u32> {
        let index = self.gate.records().scopes.get(task)?.task;
        self.tasks.has(index, task).then_some(index)
    }
}
