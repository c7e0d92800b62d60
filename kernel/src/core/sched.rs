//! The scheduler: the tasks, which of them runs and which are ready, and the log of it.
//!
//! It is what nearly every step of the kernel works on, with the machine below. What stands below
//! the parts ([`Handles`](crate::parts::io::Handles) and the others) is a method here; a part gets
//! the scheduler as an argument.

use std::rc::Rc;

use traps::Time;
use traps::internal::gate::{Gate, Shared};
use traps::internal::protocol::Trap;
use traps::internal::records::Wait;
use traps::internal::table::{Site, TaskIndex, TaskRef, Ticket};

use super::tasks::ReadyQueue;
use super::tasks::{TaskState, Tasks};
use crate::log::Log;
use crate::machine::Machine;

/// The state of a run: fields that only the task on the CPU needs.
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
    /// Whether the task has parked a wait. While a log is written: whether its `block` line was
    /// written.
    pub(crate) parked: bool,
    /// Whether the poll has filed more after the trap that is being dispatched. For the log, so
    /// entries that are quiet (`is_quiet`) do not count.
    pub(crate) goes_on: bool,
    /// The waits that end when the task leaves the CPU, each with whether it is a sleep.
    pub(crate) yields: Vec<(Ticket, bool)>,
    /// Whether the task's future is being polled, so that a panic belongs to the task.
    pub(super) is_polling: bool,
    /// Whether task 1 is handling messages.
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

    /// Returns the parked waits of a task, in the order in which they were filed.
    pub(crate) fn parked<R>(&self, task: TaskIndex, look: impl Fn(Ticket, &Wait) -> R) -> Vec<R> {
        let records = self.gate.records();
        let waits = records.waits_of(task);
        let parked = waits.filter(|(_, wait)| wait.is_parked());
        parked.map(|(ticket, wait)| look(ticket, wait)).collect()
    }

    /// Checks that the states of the tasks, the ready queue, the run and the waits agree. For
    /// tests: O(tasks * ready tasks + waits).
    ///
    /// # Panics
    ///
    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        let (records, ready) = (self.gate.records(), self.ready.iter().collect::<Vec<TaskIndex>>());
        let mut waiting = 0;
        for (index, task) in self.tasks.iter() {
            let key = self.tasks.key(index);
            let id = records.tasks.get(key).expect("a task has its half at the gate").number;
            let times = ready.iter().filter(|it| **it == index).count();
            let is_ready = task.state == TaskState::Ready;
            assert_eq!(times, usize::from(is_ready), "task {}: once in the queue if ready", id);
            let runs = self.run.task == Some(index);
            assert!(task.state != TaskState::Running || runs, "task {} has the CPU", id);
            let next = |at: &u32| task.joins.after(records.waits[*at].in_queue);
            for at in std::iter::successors(task.joins.first(), next) {
                let wait = &records.waits[at];
                let joins = matches!(wait.trap, Trap::Join { task: it, .. } if it == key);
                assert!(joins && wait.is_parked(), "task {} lists who joins it", id);
                waiting += 1;
            }
        }
        assert_eq!(self.tasks.alive(), self.tasks.iter().count(), "the tasks are counted");
        assert_eq!(ready.len(), ready.iter().filter(|it| self.tasks.state(**it).is_some()).count());
        let (mut joins, mut external) = (0, 0);
        for (ticket, wait) in records.waits.iter() {
            assert!(self.tasks.state(wait.task).is_some(), "{ticket:?} is of a task");
            match &wait.trap {
                _ if !wait.is_parked() => {}
                Trap::Join { task, .. } => joins += usize::from(records.tasks.get(*task).is_some()),
                Trap::Park { external: true, .. } => external += 1,
                Trap::Clock | Trap::Check => panic!("{ticket:?} is parked in a trap that answers"),
                _ => {}
            }
        }
        assert_eq!((waiting, self.external), (joins, external), "joins and external waits");
        let is_yield = |(at, _): &(Ticket, bool)| records.waits.get(*at).is_some();
        assert!(self.run.task.is_some() || !self.run.yields.iter().any(is_yield), "yields end");
    }
}
