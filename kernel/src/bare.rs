//! Waits on bare wakers: how a timeout ends one although there is no trap to fail.
//!
//! Knows nothing of cancellations, which let a task look at itself once.

use crate::emit::emit;
use crate::kernel::Kernel;
use crate::longrun::Came;
use crate::machine::Machine;
use crate::pending::{Offer, Source};
use crate::scope::Timing;
use crate::task::State;
use crate::trace::{Event, WakeOp};

impl<M: Machine> Kernel<M> {
    /// A wait on a bare waker has no trap to fail. Where a timeout is pending around one, a task
    /// that left the CPU is polled once more, and that poll ends the wait by dropping it.
    pub(crate) fn hit_bare_wait(&mut self, task: u32) {
        if self.tasks.get(task).state != State::Parked {
            return;
        }
        let bare = self.bare_timeouts(task);
        let (new, woken) = (Offer::NotYet, Offer::Woken);
        let found = bare.into_iter().find(|index| self.scopes.offer(task, *index, new, woken));
        let Some(index) = found else { return };
        let scope = self.scopes.get(index);
        let (scope, cause) = (scope.serial.get(), scope.seq);
        let seq =
            emit!(self, task, Event::Wake { op: WakeOp::Scope { scope }, ticket: None, cause });
        self.make_ready(task, seq, Came::Scope(scope));
    }

    /// The timeouts of a task that are pending and hold neither a ticket nor a shield: what they
    /// hold can only wait on bare wakers. Of two that enclose each other, the first that fired;
    /// both, once a poll has passed the first by: its future may not be polled again.
    fn bare_timeouts(&self, task: u32) -> Vec<u32> {
        let tickets = self.waits.of(&self.tasks, task).into_iter().map(|ticket| {
            let entry = self.waits.get(ticket).expect("a list holds parked tickets");
            self.scope_at(entry)
        });
        let mut held: Vec<u32> = tickets.collect();
        held.extend(self.scopes.shields(&self.tasks, task));
        let (mut found, mut first): (Vec<u32>, Vec<u32>) = Default::default();
        for (index, offer) in self.scopes.pending_timeouts(task) {
            if self.scopes.get(index).timing == Timing::Bare {
                // No future is inside it that could be dropped.
                continue;
            }
            let holds = held.iter().any(|inner| self.scopes.is_within(index, *inner));
            let related = |other: &u32| {
                self.scopes.is_within(index, *other) || self.scopes.is_within(*other, index)
            };
            if !holds && !first.iter().any(related) {
                found.push(index);
                first.extend((offer != Offer::Passed).then_some(index));
            }
        }
        found
    }

    /// Before a poll: lets a timeout that is pending around a bare wait end it.
    pub(crate) fn offer_bare(&mut self, task: u32) {
        for index in self.bare_timeouts(task) {
            let interrupt = self.interrupt(task, Source::Scope(index), index);
            let name = self.scopes.name_of(&self.tasks, task, index);
            self.gate.set_bare(name, interrupt);
            self.scopes.offer(task, index, Offer::Woken, Offer::Passed);
        }
    }
}
