//! The scope tree: where timeouts, branches and shields hang. What is pending in it: `pending.rs`.
//!
//! A pure structure: answers questions about the tree, delivers nothing and reads no clock.

use std::collections::BTreeMap;
use std::iter;
use std::num::NonZeroU64;
use std::panic::Location;
use std::rc::Rc;

use traps::Time;
use traps::protocol::{ROOT, ScopeId, ScopeKind, Site};
use traps::scope_table::ScopeTable;

use crate::outlived::Notes;
use crate::pending::{Pending, Source};
use crate::scope::{Scope, Timing};
use crate::task::NONE;
use crate::tasks::Tasks;
use crate::timers::{TimeQueue, TimerId};

const OPEN: &str = "a scope that is asked for is open";

/// Sets the serial numbers of those that are no scopes of anybody's code apart.
const BARE: u64 = 1 << 63;

pub(crate) struct Scopes {
    /// By place, which the table gives out.
    open: Vec<Option<Scope>>,
    len: usize,
    table: Rc<ScopeTable>,
    /// By task, in the order in which they came; a task without any has no entry.
    pub(crate) pending: BTreeMap<u32, Vec<Pending>>,
    /// By task: scopes that closed, and may have left tickets behind.
    pub(crate) left: BTreeMap<u32, Notes>,
    epoch: u32,
}

impl Scopes {
    pub(crate) fn new(epoch: u32, table: Rc<ScopeTable>) -> Scopes {
        let (open, pending, left) = Default::default();
        Scopes { open, len: 0, table, pending, left, epoch }
    }

    /// Names and places of scopes.
    pub(crate) fn table(&self) -> &Rc<ScopeTable> {
        &self.table
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Scope {
        self.open[index as usize].as_ref().expect(OPEN)
    }

    /// A scope that may be gone.
    pub(crate) fn try_get(&self, index: u32) -> Option<&Scope> {
        self.open.get(index as usize)?.as_ref()
    }

    /// The same, to be changed.
    pub(crate) fn try_get_mut(&mut self, index: u32) -> Option<&mut Scope> {
        self.open.get_mut(index as usize)?.as_mut()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Scope {
        self.open[index as usize].as_mut().expect(OPEN)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
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
        let ScopeId { index, serial, .. } = self.table.open();
        self.add(tasks, index, Scope::new(serial, (task, parent), kind, deadline, site));
        index
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
        let (kind, site) = (ScopeKind::Guard, Location::caller());
        let mut scope = Scope::new(serial, (task, ROOT), kind, deadline, site);
        scope.timing = Timing::Bare;
        scope.set_timer(Some(slot));
        let index = self.table.take();
        self.add(tasks, index, scope);
        index
    }

    /// Puts a scope at its place, and hangs it on its task and its parent.
    #[inline]
    pub(crate) fn add(&mut self, tasks: &mut Tasks, index: u32, scope: Scope) {
        let Scope { task, parent, .. } = scope;
        let place = index as usize;
        if place >= self.open.len() {
            self.open.resize_with(place + 1, || None);
        }
        self.open[place] = Some(scope);
        self.len += 1;
        self.link(tasks, task, index);
        self.count_child(parent, 1);
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
        let closed = self.open[index as usize].take().expect(OPEN);
        self.len -= 1;
        self.table.free(index);
        self.count_child(closed.parent, -1);
        self.hang_on(tasks, (closed.task, closed.children), index, closed.parent);
        closed
    }

    /// The same for one that stays, for the next guard of its deadline: nothing hangs on it any
    /// more.
    pub(crate) fn hand_down(&mut self, tasks: &Tasks, index: u32) {
        let scope = self.get_mut(index);
        let (task, parent, children) = (scope.task, scope.parent, scope.children);
        scope.children = 0;
        self.hang_on(tasks, (task, children), index, parent);
    }

    /// So many scopes of a task that hung on one hang on another.
    fn hang_on(&mut self, tasks: &Tasks, (task, mut left): (u32, u32), from: u32, to: u32) {
        let mut next = tasks.get(task).first_scope;
        // Nearly always nothing hangs on it, and a task may have many scopes.
        while left > 0 && next != NONE {
            let scope = self.get_mut(next);
            next = scope.after;
            if scope.parent == from {
                scope.parent = to;
                self.count_child(to, 1);
                left -= 1;
            }
        }
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
        let found = self.try_get(scope.index)?;
        (scope.epoch == self.epoch && found.serial == scope.serial).then_some(scope.index)
    }

    /// The name of a scope of that task.
    pub(crate) fn name_of(&self, tasks: &Tasks, task: u32, index: u32) -> ScopeId {
        if index == ROOT {
            return tasks.name_of(task).root();
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

    /// The outermost scope that an interrupt of `source` is for.
    pub(crate) fn origin(&self, source: Source) -> u32 {
        match source {
            Source::Scope(index) if self.get(index).timing != Timing::Bare => index,
            Source::Scope(_) | Source::Cancel => ROOT,
        }
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
        match (scope.timing, scope.timer()) {
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

    /// Whether scopes hang below it.
    pub(crate) fn has_inner(&self, index: u32) -> bool {
        index == ROOT || self.get(index).children > 0
    }

    /// The number of the scope that was opened last.
    pub(crate) fn opened_so_far(&self) -> u64 {
        self.table.opened_so_far()
    }

    /// The scope around `from`, unless that is a shield in force or the root is around it.
    pub(crate) fn around(&self, from: u32) -> Option<u32> {
        let scope = self.get(from);
        (!self.holds(from) && scope.parent != ROOT).then_some(scope.parent)
    }
}
