//! The scope tree: where timeouts, branches and shields hang, and which interrupts are pending.
//!
//! A pure structure: answers questions about the tree, delivers nothing and reads no clock.

use std::collections::BTreeMap;
use std::iter;
use std::num::NonZeroU64;

use slab::Slab;
use traps::Time;
use traps::protocol::{ROOT, ScopeId, ScopeKind, Site};

use crate::pending::{Pending, Source};
use crate::shields::Hold;
use crate::tasks::{NONE, Tasks};
use crate::timers::{TimeQueue, TimerId};
use crate::trace::Seq;
use crate::turn::Fired;

/// Where a scope has its deadline from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// It was opened with it.
    Own,
    /// It is for the guards of a connection deadline, whose slot is its timer.
    Guard,
    /// It stands for a connection deadline that fired without a guard; it encloses the whole task.
    Bare,
}

/// Sets the serial numbers of those that are no scopes of anybody's code apart.
const BARE: u64 = 1 << 63;

pub(crate) struct Scope {
    pub(crate) serial: NonZeroU64,
    pub(crate) task: u32,
    /// Another scope, or [`ROOT`].
    pub(crate) parent: u32,
    pub(crate) kind: ScopeKind,
    pub(crate) hold: Hold,
    pub(crate) deadline: Time,
    pub(crate) timing: Timing,
    /// Of its deadline, or of its grace.
    pub(crate) timer: Option<TimerId>,
    /// When its deadline was found to have passed.
    pub(crate) fired: Option<Time>,
    /// It is a guard whose deadline is due in this turn.
    pub(crate) expiring: bool,
    /// Traps that its interrupt reached and at which it was not dropped unread.
    pub(crate) delivered: u32,
    pub(crate) site: Site,
    /// The line that opened it or armed its grace; once it fired, its `fire` line.
    pub(crate) seq: Seq,
    before: u32,
    after: u32,
    /// How many scopes have it for a parent.
    children: u32,
}

impl Scope {
    /// Its deadline has never fired, as far as anybody is concerned.
    pub(crate) fn reset(&mut self) {
        (self.fired, self.delivered, self.deadline) = (None, 0, Time::NEVER);
    }
}

#[derive(Default)]
pub(crate) struct Scopes {
    slab: Slab<Scope>,
    /// Scopes are numbered in order of opening.
    numbers: u64,
    /// By task, in the order in which they came; a task without any has no entry.
    pub(crate) pending: BTreeMap<u32, Vec<Pending>>,
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

    /// A scope that may be gone.
    pub(crate) fn try_get(&self, index: u32) -> Option<&Scope> {
        self.slab.get(index as usize)
    }

    /// The same, to be changed.
    pub(crate) fn try_get_mut(&mut self, index: u32) -> Option<&mut Scope> {
        self.slab.get_mut(index as usize)
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
        self.add(tasks, serial, task, parent, kind, deadline, site)
    }

    /// Lets a connection deadline that fired without a guard enclose the whole of its task. It has
    /// no number among the scopes.
    pub(crate) fn open_bare(
        &mut self,
        tasks: &mut Tasks,
        task: u32,
        deadline: Time,
        number: u64,
        slot: TimerId,
    ) -> u32 {
        let serial = NonZeroU64::new(BARE | number).expect("it has a bit");
        let (kind, site) = (ScopeKind::Guard, std::panic::Location::caller());
        let index = self.add(tasks, serial, task, ROOT, kind, deadline, site);
        let scope = self.get_mut(index);
        (scope.timing, scope.timer) = (Timing::Bare, Some(slot));
        index
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a scope")]
    fn add(
        &mut self,
        tasks: &mut Tasks,
        serial: NonZeroU64,
        task: u32,
        parent: u32,
        kind: ScopeKind,
        deadline: Time,
        site: Site,
    ) -> u32 {
        let after = tasks.get(task).first_scope;
        let index = self.slab.insert(Scope {
            serial,
            task,
            parent,
            kind,
            hold: Hold::of(kind),
            deadline,
            timing: Timing::Own,
            timer: None,
            fired: None,
            expiring: false,
            delivered: 0,
            site,
            seq: 0,
            before: NONE,
            after,
            children: 0,
        });
        let index = u32::try_from(index).expect("fewer than 2^32 scopes");
        self.link(tasks, task, index);
        self.count_child(parent, 1);
        index
    }

    fn count_child(&mut self, parent: u32, by: i32) {
        if parent != ROOT {
            let scope = self.get_mut(parent);
            scope.children = scope.children.checked_add_signed(by).expect("a child has a parent");
        }
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
        self.count_child(closed.parent, -1);
        let mut next = tasks.get(closed.task).first_scope;
        let mut left = closed.children;
        // Nearly always nothing hangs on it, and a task may have many scopes.
        while left > 0 && next != NONE {
            let scope = self.get_mut(next);
            next = scope.after;
            if scope.parent == index {
                scope.parent = closed.parent;
                self.count_child(closed.parent, 1);
                left -= 1;
            }
        }
        closed
    }

    /// Hangs a scope elsewhere, with all that hangs on it. What is pending in it from outside stays
    /// where it was.
    pub(crate) fn rehome(&mut self, tasks: &mut Tasks, index: u32, task: u32, parent: u32) {
        let from = self.get(index).task;
        self.drop_notes(tasks, index);
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
        let before = std::mem::replace(&mut self.get_mut(index).parent, parent);
        self.count_child(before, -1);
        self.count_child(parent, 1);
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
    pub(crate) fn each_of(&self, tasks: &Tasks, task: u32) -> impl Iterator<Item = u32> {
        let mut next = tasks.get(task).first_scope;
        iter::from_fn(move || {
            let index = next;
            if index != NONE {
                next = self.get(index).after;
            }
            (index != NONE).then_some(index)
        })
    }

    /// The same, to change them by.
    pub(crate) fn of(&self, tasks: &Tasks, task: u32) -> Vec<u32> {
        self.each_of(tasks, task).collect()
    }

    /// Whether an interrupt of `source` reaches a trap filed in `from`: `source` is that scope or
    /// one around it, and no shield stands between.
    pub(crate) fn reaches(&self, source: u32, from: u32) -> bool {
        let mut at = from;
        while at != source {
            if at == ROOT || self.holds(at) {
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
        while at != ROOT && !matches!(self.get(at).kind, ScopeKind::Timeout | ScopeKind::Guard) {
            at = self.get(at).parent;
        }
        at
    }

    /// A scope's own deadline; [`Time::NEVER`] for none.
    pub(crate) fn own_deadline(&self, index: u32, timers: &TimeQueue) -> Time {
        let scope = self.get(index);
        match (scope.timing, scope.timer) {
            (Timing::Guard, Some(slot)) if !timers.has_fired(slot) => timers.due_at(slot),
            _ => scope.deadline,
        }
    }

    /// The nearest scope with a deadline at or around `from`, or [`ROOT`].
    pub(crate) fn limit_at(&self, from: u32, timers: &TimeQueue) -> u32 {
        let mut at = from;
        while at != ROOT && self.own_deadline(at, timers) == Time::NEVER {
            at = self.get(at).parent;
        }
        at
    }

    /// The branches of `source` that an interrupt can reach: the innermost scopes of the task that
    /// it reaches and that hold no other such scope. At least `source` itself. Scopes that nobody
    /// is in are not counted.
    pub(crate) fn branches(
        &self,
        tasks: &Tasks,
        task: u32,
        source: u32,
        timers: &TimeQueue,
    ) -> Vec<u32> {
        if !self.has_inner(source) {
            return vec![source];
        }
        let is_reached = |scope: &u32| {
            !self.holds(*scope) && self.reaches(source, *scope) && !self.is_idle(*scope, timers)
        };
        let mut reached: Vec<u32> = self.each_of(tasks, task).filter(is_reached).collect();
        if source == ROOT || reached.is_empty() {
            reached.push(source);
        }
        if reached.len() > 1 {
            let below = reached.iter().filter(|scope| **scope != ROOT);
            let mut outer: Vec<u32> = below.map(|scope| self.get(*scope).parent).collect();
            outer.sort_unstable();
            reached.retain(|scope| outer.binary_search(scope).is_err());
            // Oldest first: the order of opening.
            reached.reverse();
        }
        reached
    }

    /// Whether scopes hang below it.
    pub(crate) fn has_inner(&self, index: u32) -> bool {
        index == ROOT || self.get(index).children > 0
    }

    /// Whether it is kept for the next guard, or only stands for something.
    fn is_idle(&self, index: u32, timers: &TimeQueue) -> bool {
        let scope = self.get(index);
        match (scope.timing, scope.timer) {
            (Timing::Own, _) => false,
            (Timing::Guard, Some(slot)) => timers.owner(slot) != Fired::guard(index),
            (Timing::Guard, None) | (Timing::Bare, _) => true,
        }
    }

    /// The number of the scope that was opened last.
    pub(crate) fn opened_so_far(&self) -> u64 {
        self.numbers
    }

    /// The scope around `from`, unless that is a shield in force or the root is around it.
    pub(crate) fn around(&self, from: u32) -> Option<u32> {
        let scope = self.get(from);
        (!self.holds(from) && scope.parent != ROOT).then_some(scope.parent)
    }
}
