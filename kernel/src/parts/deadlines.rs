//! The scan of the deadline table, which the kernel shares with its tasks.

use std::mem;
use std::time::Duration;

use traps::Time;
use traps::internal::deadlines::{DeadlineTable, Due};
use traps::internal::protocol::ScopeKind;
use traps::internal::table::{ScopeId, TaskIndex};

use crate::core::sched::Sched;
use crate::log::KERNEL;
use crate::log::lines::emit_for;
use crate::machine::Machine;
use crate::trace::{Event, Timer};

/// The scans of the deadline table so far.
pub(crate) struct Scans {
    /// The time that must pass between two scans, unless a task has fired a deadline.
    tick: Duration,
    /// The time of the last scan.
    last: Time,
    /// A buffer that is used again, so that no scan allocates.
    due: Vec<Due>,
    /// The number of scans so far.
    pub(crate) count: u64,
}

impl Scans {
    pub(crate) fn new(tick: Duration) -> Scans {
        Scans { tick, last: Time::ZERO, due: Vec::new(), count: 0 }
    }

    /// Returns the time of the next scan of the deadline table. It is not before a deadline can be
    /// due. Unless a task has fired a deadline, it is also not before a tick has passed since the
    /// last scan.
    pub(crate) fn next(&self, table: &DeadlineTable) -> Option<Time> {
        let soonest = table.soonest()?;
        let is_fired = soonest == Time::ZERO;
        Some(if is_fired { soonest } else { soonest.max(self.last + self.tick) })
    }

    /// Returns whether a scan is due.
    #[inline]
    pub(crate) fn is_due(&self, sched: &Sched<impl Machine>) -> bool {
        self.next(&sched.shared.deadlines).is_some_and(|at| at <= sched.now)
    }

    /// Scans the table. Returns the deadlines that are due, to be given back.
    pub(crate) fn scan(&mut self, sched: &mut Sched<impl Machine>) -> Vec<Due> {
        self.last = sched.now;
        self.count += 1;
        let mut due = mem::take(&mut self.due);
        sched.shared.deadlines.scan(sched.now, &mut due);
        emit_for!(sched, KERNEL, {
            let armed = sched.shared.deadlines.armed() as u64;
            Event::Tick { fired: due.len() as u64, armed }
        });
        due
    }

    /// Logs a deadline that is due. Returns the scope that must fire, if it still is on the
    /// deadline. Outside a guard, that is a scope around the whole task, opened now if this is the
    /// first time.
    pub(crate) fn scope_to_fire(
        &self,
        sched: &mut Sched<impl Machine>,
        due: Due,
    ) -> Option<ScopeId> {
        let Due { deadline, number, slot, scope } = due;
        let cause = sched.log.armed(slot, number);
        sched.log_fire(Timer::Deadline(u64::from(number)), deadline, cause);
        let mut records = sched.gate.records();
        let scope = match scope.task() {
            Some(task) => {
                let kind = ScopeKind::Deadline(slot);
                let site = records.tasks.get(task)?.site;
                let found = records.scope_around(task, kind);
                found.unwrap_or_else(|| records.open_around(TaskIndex::of(task), kind, 0, site))
            }
            None => scope,
        };
        let found = records.scopes.get_mut(scope).filter(|found| is_on(found.kind, slot))?;
        found.deadline = deadline;
        Some(scope)
    }

    /// Keeps the emptied list of a scan.
    pub(crate) fn reuse(&mut self, due: Vec<Due>) {
        self.due = due;
    }
}

/// Returns whether the deadline of a scope is in this slot of the deadline table.
fn is_on(kind: ScopeKind, slot: u32) -> bool {
    match kind {
        ScopeKind::Deadline(own) | ScopeKind::Guard { slot: Some(own), .. } => own == slot,
        _ => false,
    }
}
