//! The scope tree: where timeouts, branches and shields hang, and which interrupts are pending.
//!
//! A pure structure: answers questions about the tree, delivers nothing and reads no clock.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use slab::Slab;
use traps::Time;
use traps::protocol::{ROOT, ScopeId, ScopeKind, Site};

use crate::tasks::{NONE, Tasks};
use crate::timers::TimerId;
use crate::trace::Seq;

pub(crate) struct Scope {
    pub(crate) serial: NonZeroU64,
    pub(crate) task: u32,
    /// Another scope, or [`ROOT`].
    pub(crate) parent: u32,
    pub(crate) kind: ScopeKind,
    pub(crate) deadline: Time,
    pub(crate) timer: Option<TimerId>,
    /// When its deadline was found to have passed.
    pub(crate) fired: Option<Time>,
    /// Traps that its interrupt reached and at which it was not dropped unread.
    pub(crate) delivered: u32,
    pub(crate) site: Site,
    /// The line that opened it; once it fired, its `fire` line.
    pub(crate) seq: Seq,
    before: u32,
    after: u32,
}

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
    /// The task was woken for it, in case it waits on a bare waker.
    offered: bool,
}

impl Pending {
    pub(crate) fn new(task: u32, at: u32, source: Source) -> Pending {
        Pending { task, at, source, barred: 0, offered: false }
    }
}

#[derive(Default)]
pub(crate) struct Scopes {
    slab: Slab<Scope>,
    /// Scopes are numbered in order of opening.
    numbers: u64,
    /// By task, in the order in which they came; a task without any has no entry.
    pending: BTreeMap<u32, Vec<Pending>>,
    epoch: u32,
}

impl Scopes {
    pub(crate) fn new(epoch: u32) -> Scopes {
        Scopes { epoch, ..Scopes::default() }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Scope {
        &self.slab[index as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Scope {
        &mut self.slab[index as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Opens a scope.
    pub(crate) fn open(
        &mut self,
        tasks: &mut Tasks,
        task: u32,
        parent: u32,
        kind: ScopeKind,
        deadline: Time,
        site: Site,
    ) -> u32 {
        self.numbers += 1;
        let serial = NonZeroU64::new(self.numbers).expect("numbers start at 1");
        let after = tasks.get(task).first_scope;
        let index = self.slab.insert(Scope {
            serial,
            task,
            parent,
            kind,
            deadline,
            timer: None,
            fired: None,
            delivered: 0,
            site,
            seq: 0,
            before: NONE,
            after,
        });
        let index = u32::try_from(index).expect("fewer than 2^32 scopes");
        self.link(tasks, task, index);
        index
    }

    fn link(&mut self, tasks: &mut Tasks, task: u32, index: u32) {
        let after = std::mem::replace(&mut tasks.get_mut(task).first_scope, index);
        let scope = self.get_mut(index);
        (scope.before, scope.after) = (NONE, after);
        if after != NONE {
            self.get_mut(after).before = index;
        }
    }

    fn unlink(&mut self, tasks: &mut Tasks, index: u32) {
        let Scope { task, before, after, .. } = *self.get(index);
        if before == NONE {
            tasks.get_mut(task).first_scope = after;
        } else {
            self.get_mut(before).after = after;
        }
        if after != NONE {
            self.get_mut(after).before = before;
        }
    }

    /// Takes a scope out of the tree; what still hangs on it moves to its parent.
    pub(crate) fn close(&mut self, tasks: &mut Tasks, index: u32) -> Scope {
        self.unlink(tasks, index);
        let closed = self.slab.remove(index as usize);
        let mut next = tasks.get(closed.task).first_scope;
        while next != NONE {
            let scope = self.get_mut(next);
            next = scope.after;
            if scope.parent == index {
                scope.parent = closed.parent;
            }
        }
        closed
    }

    /// Hangs a scope elsewhere, with all that hangs on it. What is pending in it from outside stays
    /// where it was.
    pub(crate) fn rehome(&mut self, tasks: &mut Tasks, index: u32, task: u32, parent: u32) {
        let from = self.get(index).task;
        for mut entry in self.pending.remove(&from).unwrap_or_default() {
            if self.is_within(index, entry.at) {
                match entry.source {
                    Source::Scope(source) if self.is_within(index, source) => entry.task = task,
                    _ => entry.at = self.get(index).parent,
                }
            }
            self.pending.entry(entry.task).or_default().push(entry);
        }
        for task in [from, task] {
            let pending = self.pending.get(&task).map_or(0, Vec::len);
            tasks.get_mut(task).pending = u32::try_from(pending).expect("fewer than 2^32");
        }
        for inner in self.of(tasks, from).into_iter().rev() {
            if from != task && self.is_within(index, inner) {
                self.unlink(tasks, inner);
                self.get_mut(inner).task = task;
                self.link(tasks, task, inner);
            }
        }
        self.get_mut(index).parent = parent;
    }

    /// The index of a scope that may be closed; [`ROOT`] for a root.
    #[inline]
    pub(crate) fn find(&self, scope: ScopeId) -> Option<u32> {
        if scope.index == ROOT {
            return Some(ROOT);
        }
        let found = self.slab.get(scope.index as usize)?;
        (scope.epoch == self.epoch && found.serial == scope.serial).then_some(scope.index)
    }

    /// The name of a scope of that task.
    pub(crate) fn name_of(&self, tasks: &Tasks, task: u32, index: u32) -> ScopeId {
        if index == ROOT {
            return tasks.root(task);
        }
        ScopeId { index, epoch: self.epoch, serial: self.get(index).serial }
    }

    /// The scopes of a task, newest first.
    pub(crate) fn of(&self, tasks: &Tasks, task: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut index = tasks.get(task).first_scope;
        while index != NONE {
            found.push(index);
            index = self.get(index).after;
        }
        found
    }

    /// Whether an interrupt of `source` reaches a trap filed in `from`: `source` is that scope or
    /// one around it, and no shield stands between.
    pub(crate) fn reaches(&self, source: u32, from: u32) -> bool {
        let mut at = from;
        while at != source {
            if at == ROOT || self.get(at).kind == ScopeKind::Shield {
                return false;
            }
            at = self.get(at).parent;
        }
        true
    }

    /// Whether `inner` is `outer` or hangs below it, shields or not.
    pub(crate) fn is_within(&self, outer: u32, inner: u32) -> bool {
        let mut at = inner;
        while at != outer {
            if at == ROOT {
                return false;
            }
            at = self.get(at).parent;
        }
        true
    }

    /// The nearest timeout at or around `from`, or [`ROOT`].
    pub(crate) fn timeout_at(&self, from: u32) -> u32 {
        let mut at = from;
        while at != ROOT && self.get(at).kind != ScopeKind::Timeout {
            at = self.get(at).parent;
        }
        at
    }

    /// The nearest scope with a deadline at or around `from`, or [`ROOT`].
    pub(crate) fn limit_at(&self, from: u32) -> u32 {
        let mut at = from;
        while at != ROOT && self.get(at).deadline == Time::NEVER {
            at = self.get(at).parent;
        }
        at
    }

    /// The branches of `source` that an interrupt can reach: the innermost scopes of the task that
    /// it reaches and that hold no other such scope. At least `source` itself.
    pub(crate) fn branches(&self, tasks: &Tasks, task: u32, source: u32) -> Vec<u32> {
        let mut reached = self.of(tasks, task);
        reached.retain(|scope| {
            self.get(*scope).kind != ScopeKind::Shield && self.reaches(source, *scope)
        });
        if source == ROOT || reached.is_empty() {
            reached.push(source);
        }
        let inner: Vec<u32> = reached
            .iter()
            .filter(|at| !reached.iter().any(|s| *s != ROOT && self.get(*s).parent == **at))
            .copied()
            .collect();
        // Oldest first: the order of opening.
        inner.into_iter().rev().collect()
    }

    /// Adds a pending interrupt, unless it is there.
    pub(crate) fn pend(&mut self, tasks: &mut Tasks, pending: Pending) -> bool {
        let Pending { task, at, source, barred, .. } = pending;
        let list = self.pending.entry(task).or_default();
        if let Some(found) = list.iter_mut().find(|p| p.at == at && p.source == source) {
            found.barred = found.barred.min(barred);
            return false;
        }
        list.push(pending);
        tasks.get_mut(task).pending += 1;
        true
    }

    /// Takes the pending interrupt that a trap in `from` is to get, if there is one.
    ///
    /// This is the one place that says who comes first: a cancellation before a timeout, and of
    /// several timeouts the one that fired first. (A value that is already there comes before
    /// both, since a task that is ready is not interrupted.)
    pub(crate) fn take_pending(
        &mut self,
        tasks: &mut Tasks,
        task: u32,
        from: u32,
    ) -> Option<Source> {
        let list = self.pending.get(&task)?;
        let reached = |p: &&Pending| self.reaches(p.at, from) && !self.is_barred(p, from);
        let cancel = list.iter().filter(reached).find(|p| p.source == Source::Cancel);
        let Pending { at, source, .. } = *cancel.or_else(|| list.iter().find(reached))?;
        self.drop_pending(tasks, task, |p| p.at == at && p.source == source);
        Some(source)
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
    fn is_barred(&self, pending: &Pending, from: u32) -> bool {
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

    /// The number of the scope that was opened last.
    pub(crate) fn opened_so_far(&self) -> u64 {
        self.numbers
    }

    /// The timeouts that are pending in a task, in the order in which they fired.
    pub(crate) fn pending_timeouts(&self, task: u32) -> Vec<u32> {
        let mut found = Vec::new();
        for pending in self.pending.get(&task).into_iter().flatten() {
            if let Source::Scope(index) = pending.source
                && !found.contains(&index)
            {
                found.push(index);
            }
        }
        found
    }

    /// Notes that a task is woken for a pending timeout; false if it was before.
    pub(crate) fn offer(&mut self, task: u32, timeout: u32) -> bool {
        let mut news = false;
        for pending in self.pending.get_mut(&task).into_iter().flatten() {
            if pending.source == Source::Scope(timeout) {
                news |= !std::mem::replace(&mut pending.offered, true);
            }
        }
        news
    }

    /// The open shields of a task.
    pub(crate) fn shields(&self, tasks: &Tasks, task: u32) -> Vec<u32> {
        let mut found = self.of(tasks, task);
        found.retain(|scope| self.get(*scope).kind == ScopeKind::Shield);
        found
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.pending.values().map(Vec::len).sum()
    }

    /// What is pending exactly there.
    pub(crate) fn pending_at(&self, task: u32, at: u32) -> Vec<Source> {
        let list = self.pending.get(&task).into_iter().flatten();
        list.filter(|p| p.at == at).map(|p| p.source).collect()
    }

    /// The scope around `from`, unless that is a shield or the root is around it.
    pub(crate) fn around(&self, from: u32) -> Option<u32> {
        let scope = self.get(from);
        (scope.kind != ScopeKind::Shield && scope.parent != ROOT).then_some(scope.parent)
    }
}
