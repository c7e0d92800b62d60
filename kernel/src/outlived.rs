//! Tickets that outlive the scope in which they were filed: they wait in the one around it.
//!
//! A future that several own can be begun in a scope and go on after it. A task may have thousands
//! of tickets, each in a scope of its own, so a scope that closes does not look through them: it
//! leaves a note, and whoever asks where a ticket is reads the notes. There are never more of them
//! than the task has tickets.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use traps::protocol::{ROOT, ScopeId};

use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::scope::Scope;
use crate::waits::Entry;

/// So many tickets are looked through at once.
const FEW: u32 = 8;

/// Of a task, the scopes that have closed, by number, and what was around each of them.
#[derive(Default)]
pub(crate) struct Notes(BTreeMap<NonZeroU64, ScopeId>);

impl Notes {
    /// The nearest scope around one that has closed and was not closed itself.
    fn around(&self, closed: ScopeId) -> Option<ScopeId> {
        let mut found = None;
        let mut at = closed;
        while at.index != ROOT
            && let Some(outer) = self.0.get(&at.serial)
        {
            at = *outer;
            found = Some(at);
        }
        found
    }
}

impl<M: Machine> Kernel<M> {
    /// The scope in which a ticket waits, or [`ROOT`].
    #[inline]
    pub(crate) fn scope_at(&self, entry: &Entry) -> u32 {
        self.scopes.find(self.scope_of(entry)).unwrap_or(ROOT)
    }

    /// The name of the scope in which a ticket waits.
    #[inline]
    pub(crate) fn scope_of(&self, entry: &Entry) -> ScopeId {
        let filed_in = self.waits.scope(entry);
        if self.scopes.left.is_empty() {
            return filed_in;
        }
        let notes = self.scopes.left.get(&entry.task);
        notes.and_then(|notes| notes.around(filed_in)).unwrap_or(filed_in)
    }

    /// A scope closes of a task that has tickets: those in it wait in the one around it.
    #[inline(never)]
    pub(crate) fn close_around_tickets(&mut self, task: u32, index: u32) {
        let outliving = self.hand_out(task, index);
        self.scopes.close(&mut self.tasks, index);
        for ticket in outliving {
            self.deliver_pending(ticket);
        }
    }

    /// The same for one that is kept for the next guard of its deadline, so that no note of it may
    /// stay. O(tickets of the task).
    pub(crate) fn empty_scope(&mut self, index: u32) {
        let Scope { task, parent, .. } = *self.scopes.get(index);
        self.scopes.hand_down(&self.tasks, index);
        if self.tasks.get(task).waits == 0 {
            return;
        }
        let inner = self.scopes.name_of(&self.tasks, task, index);
        let outer = self.scopes.name_of(&self.tasks, task, parent);
        self.settle(task);
        let to = |scope| (scope == inner).then_some(outer);
        for ticket in self.waits.move_out(&self.tasks, task, to) {
            self.deliver_pending(ticket);
        }
    }

    /// Gives those that are known to have been in it.
    fn hand_out(&mut self, task: u32, index: u32) -> Vec<u32> {
        let inner = self.scopes.name_of(&self.tasks, task, index);
        let outer = self.scopes.name_of(&self.tasks, task, self.scopes.get(index).parent);
        let owner = self.tasks.get(task);
        let (waits, pending) = (owner.waits, owner.pending);
        // What is pending around it is for them, too, so they are to be known.
        if waits <= FEW || pending > 0 {
            self.settle(task);
            let to = |scope| (scope == inner).then_some(outer);
            return self.waits.move_out(&self.tasks, task, to);
        }
        let notes = self.scopes.left.entry(task).or_default();
        notes.0.insert(inner.serial, outer);
        if notes.0.len() > waits as usize {
            self.settle(task);
        }
        Vec::new()
    }

    /// Does what the notes of a task say, and throws them away.
    fn settle(&mut self, task: u32) {
        if let Some(notes) = self.scopes.left.remove(&task) {
            self.waits.move_out(&self.tasks, task, |scope| notes.around(scope));
        }
    }
}
