//! Interrupts that wait for the next blocking trap: where they are pending, and who comes first.
//!
//! A list beside the scope tree. Delivers nothing.

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
    /// To a wait on a bare waker: 1, the task was woken for it; 2, a poll has passed by.
    offers: u8,
}

impl Pending {
    pub(crate) fn new(task: u32, at: u32, source: Source) -> Pending {
        Pending { task, at, source, barred: 0, offers: 0 }
    }
}

impl Scopes {
    /// Adds a pending interrupt, unless it is there.
    pub(crate) fn pend(&mut self, tasks: &mut Tasks, pending: Pending) -> bool {
        let Pending { task, at, source, barred, .. } = pending;
        let there = |p: &&mut Pending| p.task == task && p.at == at && p.source == source;
        if let Some(found) = self.pending.iter_mut().find(there) {
            found.barred = found.barred.min(barred);
            return false;
        }
        self.pending.push(pending);
        tasks.get_mut(task).pending += 1;
        true
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
        let reached = |p: &&Pending| {
            let comes = p.task == task && self.reaches(p.at, from) && !self.holds(p.at);
            comes && !self.is_barred(p, from)
        };
        let first = self.pending.iter().filter(reached).min_by_key(|p| self.precedence(p.source));
        let Pending { at, source, .. } = *first?;
        self.drop_pending(tasks, |p| p.task == task && p.at == at && p.source == source);
        Some(source)
    }

    /// Drops the pending interrupts for which `gone` holds.
    pub(crate) fn drop_pending(&mut self, tasks: &mut Tasks, gone: impl Fn(&Pending) -> bool) {
        self.pending.retain(|pending| {
            let gone = gone(pending);
            if gone {
                tasks.get_mut(pending.task).pending -= 1;
            }
            !gone
        });
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
    pub(crate) fn pending_timeouts(&self, task: u32) -> Vec<(u32, u8)> {
        let mut found: Vec<(u32, u8)> = Vec::new();
        for pending in self.pending.iter().filter(|pending| pending.task == task) {
            let Source::Scope(index) = pending.source else { continue };
            if !found.iter().any(|(known, _)| *known == index) {
                found.push((index, pending.offers));
            }
        }
        found.sort_by_key(|(index, _)| self.precedence(Source::Scope(*index)));
        found
    }

    /// Notes the next step of a pending timeout's offer; false if `step` is not the next.
    pub(crate) fn offer(&mut self, task: u32, timeout: u32, step: u8) -> bool {
        let mut news = false;
        for pending in &mut self.pending {
            let it = pending.task == task && pending.source == Source::Scope(timeout);
            if it && pending.offers + 1 == step {
                (pending.offers, news) = (step, true);
            }
        }
        news
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// What is pending exactly there.
    pub(crate) fn pending_at(&self, task: u32, at: u32) -> Vec<Source> {
        let here = |p: &&Pending| p.task == task && p.at == at;
        self.pending.iter().filter(here).map(|p| p.source).collect()
    }
}
