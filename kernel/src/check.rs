//! The invariants of the scheduler and the parts, as code. [`traps`] has those of the gate.
//!
//! Tests call these checks at each state that an observer of the log sees. A fault that leaves no
//! trace in any output, such as a count that is one too high, ends the next check.

use std::cmp::Reverse;

use traps::Time;
use traps::internal::protocol::Trap;
use traps::internal::records::Records;
use traps::internal::table::{TaskIndex, Ticket};

use crate::core::sched::Sched;
use crate::core::tasks::TaskState;
use crate::core::timers::{Owner, Timers, lives};
use crate::machine::Machine;
use crate::parts::io::Handles;

impl<M: Machine> Sched<M> {
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
        for (key, task) in records.tasks.iter() {
            assert!(self.find(key).is_some(), "task {} has its half in the kernel", task.number);
        }
        let is_there = |index| self.tasks.state(index).is_some();
        assert!(self.tasks.main.is_none_or(is_there), "main has not ended");
        records.check_queue(&self.shared.signals.queue);
        records.check_queue(&self.shared.until_closing);
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

impl Timers {
    /// Checks that each parked sleep and each scope with a timer has one entry, and that the stale
    /// entries are counted. For tests: O(timers * waits).
    ///
    /// # Panics
    ///
    /// Panics if an invariant is broken.
    pub(crate) fn check(&self, records: &Records) {
        let entries = |owner| self.heap.iter().filter(|Reverse(it)| it.owner() == owner).count();
        let mut live = 0;
        for (at, wait) in records.waits.iter() {
            let sleeps = wait.is_parked() && matches!(wait.trap, Trap::Sleep { span: 1.., .. });
            assert_eq!(
                entries(Owner::Sleep(at)) * usize::from(wait.is_parked()),
                usize::from(sleeps)
            );
            live += usize::from(sleeps);
        }
        for (at, scope) in records.scopes.iter().filter(|(_, scope)| scope.has_timer) {
            assert_eq!(entries(Owner::Scope(at)), 1, "{at:?} has its timer");
            assert!(scope.deadline != Time::NEVER, "{at:?} has a deadline");
            live += 1;
        }
        let stale = self.heap.iter().filter(|Reverse(it)| !lives(records, it.owner())).count();
        assert_eq!(self.heap.len(), live + stale, "an entry is live or stale");
        assert!(stale <= records.stale_timers, "{stale} stale of {}", records.stale_timers);
    }
}

impl Handles {
    /// Checks that the handles and the parked waits agree, and that the counts are right. For
    /// tests: O(handles + waits).
    ///
    /// # Panics
    ///
    /// Panics if an invariant is broken.
    pub(crate) fn check(&self, records: &Records) {
        let all = || self.table.iter().flatten();
        assert_eq!(self.known, all().count(), "the handles are counted");
        assert_eq!(self.registered, all().filter(|it| it.registered).count(), "and registrations");
        for handle in all() {
            for (waiting, ready) in handle.waiting.iter().zip(handle.ready) {
                assert!(waiting.is_none() || handle.registered, "who waits is registered");
                assert!(waiting.is_none() || !ready, "nobody waits for what is ready");
            }
            assert!(!handle.registered || handle.was_registered);
        }
        let mut waits = 0;
        for (ticket, wait) in records.waits.iter().filter(|(_, wait)| wait.is_parked()) {
            if let Trap::Io { handle, direction } = wait.trap {
                let found = self.table.get(handle.index as usize).and_then(Option::as_ref);
                let found =
                    found.filter(|it| it.serial == handle.serial()).expect("it has a handle");
                assert_eq!(found.waiting[direction as usize], Some(ticket), "it is waited for");
                waits += 1;
            }
        }
        assert_eq!(waits, all().flat_map(|it| it.waiting).flatten().count(), "and only for these");
    }
}
