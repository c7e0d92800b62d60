//! The scan of the deadline table, which the kernel shares with its tasks.

use std::mem;

use traps::Time;
use traps::internal::protocol::ScopeKind;
use traps::parts::deadlines::Due;

use crate::core::Core;
use crate::log::{KERNEL, emit_for};
use crate::machine::Machine;
use crate::trace::{Event, Timer};

impl<M: Machine> Core<M> {
    /// Returns the time of the next scan of the deadline table. It is not before a deadline can be
    /// due. Unless a task has fired a deadline, it is also not before a tick has passed since the
    /// last scan.
    pub(crate) fn next_scan(&self) -> Option<Time> {
        let soonest = self.shared.deadlines.soonest()?;
        let is_fired = soonest == Time::ZERO;
        Some(if is_fired {
            soonest
        } else {
            soonest.max(self.scanned + self.options.tick_in_force())
        })
    }

    /// Scans the table of connection deadlines if a scan is due, and fires the due deadlines.
    #[inline]
    pub(crate) fn fire_deadlines(&mut self) {
        if self.next_scan().is_some_and(|at| at <= self.now) {
            self.scan_deadlines();
        }
    }

    #[cold]
    fn scan_deadlines(&mut self) {
        self.scanned = self.now;
        self.counts.scans += 1;
        let mut due = mem::take(&mut self.due);
        self.shared.deadlines.scan(self.now, &mut due);
        emit_for!(self, KERNEL, {
            let armed = self.shared.deadlines.armed() as u64;
            Event::Tick { fired: due.len() as u64, armed }
        });
        for Due { deadline, number, slot, scope } in due.drain(..) {
            let cause = self.log.armed.get(&number).copied().unwrap_or_default();
            self.log_fire(Timer::Deadline(u64::from(number)), deadline, cause);
            if let Some(found) = self.gate.records().scopes.get_mut(scope)
                && is_on(found.kind, slot)
            {
                found.deadline = deadline;
            } else {
                continue;
            }
            self.fire(scope);
        }
        self.due = due;
        self.between_events();
    }
}

/// Returns whether the deadline of a scope is in this slot of the deadline table.
fn is_on(kind: ScopeKind, slot: u32) -> bool {
    match kind {
        ScopeKind::Deadline(own) | ScopeKind::Guard { slot: Some(own), .. } => own == slot,
        _ => false,
    }
}
