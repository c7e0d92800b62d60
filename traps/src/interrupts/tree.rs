//! The tree of scopes: how they open, close and move, and how a walk finds what is around a wait.
//!
//! A scope knows the scope around it. No record lists the content of a scope; a scope only counts
//! it. **A wait, or a scope, is *in* the scope that polled it last.** So every question is answered
//! by a walk from the inside out, and opening or closing a scope changes no list. A scope can close
//! while it still contains something. Its record then stays, marked [`ScopeKind::Closed`], as a
//! link to the outer scope, until it is empty.
//!
//! The obvious way is a tree with lists of children, which `fire` walks from the outside in. Each
//! opening and closing then costs the links to siblings and children, a closing scope has to move
//! its content, and `fire` has to mark each branch in advance.

use std::mem;

use super::source::{Scope, ScopeKind};
use crate::core::records::Records;
use crate::core::table::{NONE, ScopeId, Site, TaskIndex, TaskRef};
use crate::time::Time;

/// The methods that open and close scopes.
impl Records {
    /// Opens a scope inside `parent`.
    #[inline]
    pub(crate) fn open(
        &mut self,
        parent: ScopeId,
        kind: ScopeKind,
        number: u64,
        deadline: Time,
        site: Site,
    ) -> ScopeId {
        debug_assert!(
            parent.task().is_some() || self.is_open(parent),
            "a scope is opened inside a task or an open scope"
        );
        let task = match parent.task() {
            Some(task) => TaskIndex::of(task),
            None => self.scopes[parent.index].task,
        };
        let scope = self.new_scope(task, kind, number, site);
        let scope = Scope { parent, deadline, is_inner: true, ..scope };
        // Counted so that `is_bare` (`pending.rs`) looks through the scopes of the thread only if
        // there is a shield at all.
        self.shields += usize::from(kind == ScopeKind::Shield);
        let scope = self.scopes.insert(scope);
        self.tasks[task.0].open += 1;
        if let Some(parent) = self.count_in(parent) {
            parent.newest_scope = scope.index;
        }
        scope
    }

    pub(crate) fn new_scope(
        &self,
        task: TaskIndex,
        kind: ScopeKind,
        number: u64,
        site: Site,
    ) -> Scope {
        Scope {
            kind,
            has_timer: false,
            is_inner: false,
            number,
            task,
            parent: ScopeId::NONE,
            // A source that fires later has a larger rank.
            order: self.order,
            inside: 0,
            newest_wait: NONE,
            newest_scope: NONE,
            deadline: Time::NEVER,
            site,
            line: 0,
            fired: None,
        }
    }

    /// Records that a scope is polled inside `parent`, another scope than before. From now on it is
    /// in `parent`.
    pub(crate) fn move_scope(&mut self, scope: ScopeId, parent: ScopeId) {
        let before = mem::replace(&mut self.scopes[scope.index].parent, parent);
        debug_assert!(before != parent, "a scope moves to another parent");
        if let Some(parent) = self.count_in(parent) {
            parent.newest_scope = scope.index;
        }
        self.count_out(before);
    }

    /// Closes a scope. If it has fired and no wait has taken its interrupt, the interrupt is lost.
    #[inline(always)]
    pub fn close(&mut self, scope: ScopeId) -> Option<Scope> {
        let found = self.scopes.get(scope).filter(|found| found.kind != ScopeKind::Closed)?;
        // A wait or a scope that is still inside finds its outer scope through this row. So the row
        // stays, marked Closed, until it is empty.
        let is_empty = found.inside == 0;
        let closed = if is_empty { self.scopes.remove(scope)? } else { self.close_occupied(scope) };
        // The entry stays in the heap. To find it there would cost more than to skip it when it is
        // due.
        self.stale_timers += usize::from(closed.has_timer);
        self.sources -= usize::from(closed.fired.is_some());
        self.shields -= usize::from(closed.kind == ScopeKind::Shield);
        if closed.is_inner {
            self.tasks[closed.task.0].open -= 1;
            // A row that stays is still inside its parent, and so keeps its parent.
            if is_empty {
                self.count_out(closed.parent);
            }
        } else {
            self.close_around(scope, &closed);
        }
        Some(closed)
    }

    /// Replaces a scope that still contains waits or scopes by a row of the kind
    /// [`ScopeKind::Closed`].
    #[cold]
    fn close_occupied(&mut self, scope: ScopeId) -> Scope {
        let found = &self.scopes[scope.index];
        debug_assert!(found.inside > 0, "a row stays only for what is in it");
        // Without `newest_wait` and `newest_scope`: only a scope that fires has a use for them.
        let Scope { task, parent, inside, is_inner, site, .. } = *found;
        let link = self.new_scope(task, ScopeKind::Closed, 0, site);
        let link = Scope { parent, inside, is_inner, ..link };
        mem::replace(&mut self.scopes[scope.index], link)
    }

    /// Takes a closed scope around a whole task out of the chain of parents.
    #[cold]
    fn close_around(&mut self, scope: ScopeId, closed: &Scope) {
        let around = &mut self.tasks[closed.task.0].around;
        if *around == scope.index {
            *around = closed.parent.index;
        }
        let mut at = self.scopes.at(*around).map_or(ScopeId::NONE, |(at, _)| at);
        // Nothing counts the scopes around a task. So walk from the innermost outwards to the one
        // that has the closed scope as its parent, and let it skip that.
        while let Some(inner) = self.scopes.get_mut(at) {
            if inner.parent == scope {
                inner.parent = closed.parent;
                return;
            }
            at = inner.parent;
        }
    }
}

/// The methods that walk from a scope outwards.
impl Records {
    /// Iterates over `from` and the scopes around it, from the inside out. The scopes around the
    /// whole task come last.
    pub(crate) fn outwards(&self, from: ScopeId) -> impl Iterator<Item = (ScopeId, &Scope)> {
        std::iter::successors(self.resolve(from), move |(_, scope)| self.resolve(scope.parent))
    }

    /// Returns the scope `at`. Outside all scopes of a task, returns the innermost scope around the
    /// task, if there is one.
    fn resolve(&self, at: ScopeId) -> Option<(ScopeId, &Scope)> {
        match at.task() {
            Some(task) => self.scopes.at(self.tasks.get(task)?.around),
            None => Some((at, self.scopes.get(at)?)),
        }
    }

    /// Closes the scopes around a whole task, which has ended.
    pub fn close_around_task(&mut self, task: TaskRef) {
        while let Some((around, _)) = self.resolve(ScopeId::of(task)) {
            self.close(around);
        }
    }

    /// Returns whether a scope is open.
    #[must_use]
    pub fn is_open(&self, scope: ScopeId) -> bool {
        self.scopes.get(scope).is_some_and(|scope| scope.kind != ScopeKind::Closed)
    }

    /// Returns the number of the innermost open scope at or around `from`, as the log shows it. The
    /// number 0 is the task itself.
    #[must_use]
    pub fn number_of(&self, from: ScopeId) -> u64 {
        let mut open = self.outwards(from).filter(|(_, scope)| scope.kind != ScopeKind::Closed);
        open.next().filter(|(_, scope)| scope.is_inner).map_or(0, |(_, scope)| scope.number)
    }

    /// Returns the number of the innermost open scope at or around `from` that has a line in the
    /// log. The task may have opened others since, in the same poll.
    #[must_use]
    pub fn logged_number_of(&self, from: ScopeId) -> u64 {
        let logged = self.outwards(from).find(|(_, scope)| scope.line != 0);
        // `NONE` names no scope, and so has the number of the task itself.
        self.number_of(logged.map_or(ScopeId::NONE, |(scope, _)| scope))
    }

    /// Returns whether `at` is `scope`, or is inside it.
    pub(crate) fn is_within(&self, at: ScopeId, scope: ScopeId) -> bool {
        self.outwards(at).any(|(around, _)| around == scope)
    }
}
