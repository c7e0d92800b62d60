//! Interrupts that were delivered and dropped unread: pending again, if they still stand.
//!
//! Delivers nothing.

use traps::Interrupt;
use traps::protocol::{ROOT, ScopeId};

use crate::emit::emit;
use crate::kernel::Kernel;
use crate::log;
use crate::machine::Machine;
use crate::pending::{Pending, Source};
use crate::trace::Event;

impl<M: Machine> Kernel<M> {
    /// An interrupt was delivered, but its future was dropped before it was read.
    pub(crate) fn unread(&mut self, interrupt: &Interrupt) {
        // Of a timeout that has closed, its closing has seen to those further out. A branch or a
        // shield in it that has closed leaves it to the drop.
        let nearest = interrupt.position();
        let within = self.scopes.find(interrupt.delivered_in());
        let within = within.or_else(|| self.scopes.find(nearest));
        // The trap and its scopes may be another task's by now, or gone.
        let (source, task) = if interrupt.is_cancelled() {
            (Source::Cancel, self.task_of_root(interrupt.source(), within))
        } else {
            match self.scopes.find(interrupt.source()) {
                // Of a guard that was armed anew, it is of a firing that is forgotten.
                Some(index) if within.is_some() && self.stands(index, interrupt) => {
                    (Source::Scope(index), Some(self.scopes.get(index).task))
                }
                _ => return,
            }
        };
        let Some(task) = task.filter(|task| !self.tasks.get(*task).is_ended()) else {
            return;
        };
        let within = within.filter(|scope| self.is_in(*scope, task));
        let at = within.unwrap_or_else(|| self.scopes.origin(source));
        // In a race the winner may have it: then the task knows.
        if !self.uncount_delivery(task, source) {
            return;
        }
        // Whoever dropped it may go on elsewhere. Of a timeout that is pending anew in one branch,
        // others have had theirs.
        let mut pending = Pending::new(task, at, source);
        pending.unheard = source == Source::Cancel;
        if self.scopes.pend(&mut self.tasks, pending) {
            let scope = if at == ROOT { 0 } else { self.scopes.get(at).serial.get() };
            let outcome = log::interrupt(interrupt);
            emit!(self, task, Event::Cleanup { scope, outcome });
        }
    }

    /// Whether a scope has fired, and is that of the interrupt's firing still.
    fn stands(&self, index: u32, interrupt: &Interrupt) -> bool {
        index != ROOT && self.scopes.get(index).fired() == Some(interrupt.reading())
    }

    /// The task with that root scope, if it is there: most likely that of `scope`.
    fn task_of_root(&self, root: ScopeId, scope: Option<u32>) -> Option<u32> {
        let near = scope.and_then(|index| self.scopes.try_get(index)).map(|scope| scope.task);
        let near = near.filter(|task| self.tasks.name_of(*task).root() == root);
        near.or_else(|| self.tasks.find_by_number(root.serial))
    }
}
