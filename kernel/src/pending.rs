//! Interrupts that wait for the next blocking trap: where they are pending, and who comes first.
//!
//! Lists beside the scope tree, one a task that has any. Delivers nothing.

use traps::protocol::{ROOT, ScopeKind};

use crate::scopes::Scopes;
use crate::tasks::Tasks;
use crate::trace::Seq;

/// Where an interrupt comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Cancel,
    Scope(u32),
}

/// An interrupt that waits for the next blocking trap in a scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) task: u32,
    /// The scope, or [`ROOT`].
    pub(crate) at: u32,
    pub(crate) source: Source,
    /// It does not reach into branches with this number or a lower one: zero for none.
    pub(crate) barred: u64,
    /// No trap has had it yet: it is for the first one, wherever that is filed in all that it was
    /// for. Nobody may be in the branch where it is pending.
    pub(crate) unheard: bool,
    offer: Offer,
}

/// How far a pending timeout was offered to the wait on a bare waker that it is around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    NotYet,
    /// The task was woken for it.
    Woken,
    /// A poll has passed it by.
    Passed,
}

impl Pending {
    pub(crate) fn new(task: u32, at: u32, source: Source) -> Pending {
        Pending { task, at, source, barred: 0, unheard: false, offer: Offer::NotYet }
    }
}

impl Scopes {
    /// Adds a pending interrupt, unless it is there.
    pub(crate) fn pend(&mut self, tasks: &mut Tasks, pending: Pending) -> bool {
        let Pending { task, at, source, barred, unheard, .. } = pending;
        let list = self.pending.entry(task).or_default();
        if let Some(found) = list.iter_mut().find(|p| p.at == at && p.source == source) {
            found.barred = found.barred.min(barred);
            found.unheard |= unheard;
            return false;
        }
        list.push(pending);
        tasks.get_mut(task).pending += 1;
        true
    }

    /// Whether anything is pending in any task.
    #[inline]
    pub(crate) fn is_any_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Who comes first: a cancellation before a timeout, and of several timeouts the one that fired
    /// first, which is not always the one that has been pending longest. (A value that is already
    /// there comes before both, since a task that is ready is not interrupted.)
    ///
    /// This is the one place that says so.
    pub(crate) fn precedence(&self, source: Source) -> Seq {
        match source {
            Source::Cancel => 0,
            // Its `fire` line.
            Source::Scope(index) => self.get(index).seq,
        }
    }

    /// Takes the pending interrupt that a trap in `from` is to get, if there is one.
    pub(crate) fn take_pending(
        &mut self,
        tasks: &mut Tasks,
        task: u32,
        from: u32,
    ) -> Option<Source> {
        let is_here =
            |p: &Pending| self.reaches(p.at, from) && !self.holds(p.at) && !self.is_barred(p, from);
        let reached = self.pending_in(task).filter_map(|p| {
            let here = is_here(p);
            let reached = here || p.unheard && self.reaches(self.origin(p.source), from);
            reached.then(|| ((self.precedence(p.source), !here), *p))
        });
        let ((_, elsewhere), Pending { at, source, .. }) = reached.min_by_key(|(key, _)| *key)?;
        if !elsewhere {
            self.drop_pending(tasks, task, |p| p.at == at && p.source == source);
        }
        Some(source)
    }

    /// A trap has it: from now on it is for those branches alone in which it is pending.
    pub(crate) fn hear(&mut self, task: u32, source: Source) {
        for pending in self.pending.get_mut(&task).into_iter().flatten() {
            pending.unheard &= pending.source != source;
        }
    }

    /// What is pending in a task, in the order in which it came.
    pub(crate) fn pending_in(&self, task: u32) -> impl Iterator<Item = &Pending> {
        self.pending.get(&task).into_iter().flatten()
    }

    /// Drops the pending interrupts of a task for which `gone` holds.
    pub(crate) fn drop_pending(
        &mut self,
        tasks: &mut Tasks,
        task: u32,
        gone: impl Fn(&Pending) -> bool,
    ) {
        let Some(list) = self.pending.get_mut(&task) else { return };
        list.retain(|pending| !gone(pending));
        tasks.get_mut(task).pending = u32::try_from(list.len()).expect("fewer than 2^32");
        if list.is_empty() {
            self.pending.remove(&task);
        }
    }

    /// Whether a branch that it may not enter stands between a pending interrupt and `from`.
    pub(crate) fn is_barred(&self, pending: &Pending, from: u32) -> bool {
        let mut at = from;
        while pending.barred > 0 && at != pending.at && at != ROOT {
            let scope = self.get(at);
            if scope.kind == ScopeKind::Branch && scope.serial.get() <= pending.barred {
                return true;
            }
            at = scope.parent;
        }
        false
    }

    /// The timeouts that are pending in a task, as they fired, and how far each was offered.
    pub(crate) fn pending_timeouts(&self, task: u32) -> Vec<(u32, Offer)> {
        let mut found: Vec<(u32, Offer)> = Vec::new();
        for pending in self.pending_in(task) {
            let Source::Scope(index) = pending.source else { continue };
            if !found.iter().any(|(known, _)| *known == index) {
                found.push((index, pending.offer));
            }
        }
        found.sort_by_key(|(index, _)| self.precedence(Source::Scope(*index)));
        found
    }

    /// Takes a pending timeout's offer a step further; false if it stood elsewhere than at `from`.
    pub(crate) fn offer(&mut self, task: u32, timeout: u32, from: Offer, to: Offer) -> bool {
        let mut news = false;
        for pending in self.pending.get_mut(&task).into_iter().flatten() {
            if pending.source == Source::Scope(timeout) && pending.offer == from {
                (pending.offer, news) = (to, true);
            }
        }
        news
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.pending.values().map(Vec::len).sum()
    }

    /// What is pending exactly there.
    pub(crate) fn pending_at(&self, task: u32, at: u32) -> Vec<Pending> {
        self.pending_in(task).filter(|p| p.at == at).copied().collect()
    }
}
