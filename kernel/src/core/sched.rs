//! The scheduler: the tasks, which of them runs and which are ready, and the log of it.
//!
//! Nearly every step of the kernel works on it. The methods that a part such as
//! [`Handles`](crate::parts::io::Handles) needs are here, and the part gets `&mut Sched`.

use std::rc::Rc;

use traps::Time;
use traps::internal::gate::{Gate, Shared};
use traps::internal::protocol::Trap;
use traps::internal::records::Wait;
use traps::internal::table::{Site, TaskIndex, TaskRef, Ticket};

use super::tasks::ReadyQueue;
use super::tasks::Tasks;
use crate::log::Log;
use crate::machine::Machine;

/// The state of the run of the task on the CPU.
#[derive(Default)]
pub(crate) struct Run {
    /// The index of the task that runs. `None` between two runs.
    pub(crate) task: Option<TaskIndex>,
    /// The time at which the task got the CPU, by the last reading of the clock.
    pub(crate) since: Time,
    /// Whether the task must be polled again before it can leave the CPU.
    pub(crate) again: bool,
    /// Whether the task's own waker was called during the run. The task then goes to the end of the
    /// ready queue.
    pub(crate) woken: bool,
    /// Whether the `block` line of the present run is written. Without a log, a wait that parks
    /// sets it, because there is no line to write.
    pub(crate) block_logged: bool,
    /// For the log: whether the trap that is being dispatched is followed by an entry of the same
    /// poll that writes a line of this task.
    pub(crate) goes_on: bool,
    /// The waits that end when the task leaves the CPU, each with whether it is a sleep.
    pub(crate) yields: Vec<(Ticket, bool)>,
    /// Whether the task's future is being polled, so that a panic belongs to the task.
    pub(super) is_polling: bool,
    /// Whether task 1, which handles the messages of other threads, has the CPU. For the log.
    pub(crate) messages: bool,
    /// Whether each run is watched: by a log, a hook or the watchdog.
    pub(crate) is_watched: bool,
}

/// The tasks of a kernel, who of them runs or is ready, and the log of it.
pub(crate) struct Sched<M: Machine> {
    pub(crate) machine: M,
    pub(crate) gate: &'static Gate,
    pub(crate) shared: Rc<Shared>,
    /// The last reading of the clock.
    pub(crate) now: Time,
    pub(crate) turn: u64,
    pub(crate) log: Log,
    pub(crate) tasks: Tasks,
    pub(crate) ready: ReadyQueue,
    /// The state of the run of the task on the CPU.
    pub(crate) run: Run,
    /// The number of waits that something outside the kernel will end.
    pub(crate) external: usize,
    /// The number of traps so far.
    pub(crate) traps: u64,
    /// The number of wakes so far that came after the end of their wait.
    pub(crate) stale: u64,
}

impl<M: Machine> Sched<M> {
    pub(crate) fn new(machine: M, gate: &'static Gate, shared: Rc<Shared>) -> Sched<M> {
        Sched {
            machine,
            gate,
            now: Time::ZERO,
            turn: 0,
            log: Log::new(shared.epoch),
            tasks: Tasks::new(gate),
            ready: ReadyQueue::default(),
            run: Run::default(),
            external: 0,
            traps: 0,
            stale: 0,
            shared,
        }
    }

    /// Returns the index of a task, or `None` if it has ended.
    #[inline]
    pub(crate) fn find(&self, task: TaskRef) -> Option<TaskIndex> {
        self.tasks.find(task)
    }

    /// Returns the trap of a wait, and its call site.
    pub(crate) fn trap_of(&self, ticket: Ticket) -> (Trap, Site) {
        let records = self.gate.records();
        let wait = &records.waits[ticket.index];
        (wait.trap.clone(), wait.site)
    }

    /// Returns whether a wait is parked.
    pub(crate) fn is_parked(&self, ticket: Ticket) -> bool {
        self.gate.records().waits.get(ticket).is_some_and(Wait::is_parked)
    }

    /// Returns what `look` makes of each parked wait of a task, in the order in which they were
    /// filed.
    pub(crate) fn parked<R>(&self, task: TaskIndex, look: impl Fn(Ticket, &Wait) -> R) -> Vec<R> {
        let records = self.gate.records();
        let waits = records.waits_of(task);
        let parked = waits.filter(|(_, wait)| wait.is_parked());
        parked.map(|(ticket, wait)| look(ticket, wait)).collect()
    }
}
