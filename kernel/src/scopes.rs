//! The scope table: the tree of timeouts, guards, branches and shields of all tasks.
//!
//! A pure structure: it answers questions about the tree, delivers nothing and reads no clock.

use std::ops::{Index, IndexMut};

use traps::Time;
use traps::protocol::{Opening, ROOT, ScopeId, ScopeKind, Site};

use crate::interrupts::Fired;
use crate::task::{NONE, Tasks};
use crate::timers::TimerId;
use crate::trace::Seq;

/// An open scope.
pub(crate) struct Scope {
    /// Scopes are numbered in the order of their opening.
    pub(crate) number: u64,
    pub(crate) task: u32,
    /// The scope around it, of the same task, or [`ROOT`].
    pub(crate) parent: u32,
    pub(crate) kind: ScopeKind,
    /// Its own deadline, unless that is in the deadline table.
    pub(crate) deadline: Time,
    pub(crate) timer: Option<TimerId>,
    /// Its deadline has passed.
    pub(crate) fired: Option<Box<Fired>>,
    pub(crate) site: Site,
    /// The line that opened it.
    pub(crate) seq: Seq,
    /// Its neighbours in the list of the task's scopes: the next older, and the next newer.
    older: u32,
    newer: u32,
}

/// All open scopes of a kernel, by the index that the gate chose.
#[derive(Default)]
pub(crate) struct Scopes {
    open: Vec<Option<Scope>>,
    len: usize,
}

const OPEN: &str = "a scope that is asked for is open";

impl Index<u32> for Scopes {
    type Output = Scope;
    fn index(&self, index: u32) -> &Scope {
        self.open[index as usize].as_ref().expect(OPEN)
    }
}

impl IndexMut<u32> for Scopes {
    fn index_mut(&mut self, index: u32) -> &mut Scope {
        self.open[index as usize].as_mut().expect(OPEN)
    }
}

impl Scopes {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Scope> {
        self.open.iter().flatten()
    }

    /// Opens a scope of a task.
    pub(crate) fn open(&mut self, tasks: &mut Tasks, task: u32, opening: &Opening) -> u32 {
        let Opening { scope: ScopeId { index, number }, parent, kind, deadline, site, .. } =
            *opening;
        let place = index as usize;
        if place >= self.open.len() {
            self.open.resize_with(place + 1, || None);
        }
        let older = std::mem::replace(&mut tasks[task].newest_scope, index);
        if older != NONE {
            self[older].newer = index;
        }
        let (timer, fired, seq, newer) = (None, None, 0, NONE);
        self.open[place] = Some(Scope {
            number,
            task,
            parent,
            kind,
            deadline,
            timer,
            fired,
            site,
            seq,
            older,
            newer,
        });
        self.len += 1;
        index
    }

    /// Removes a scope from the tree. Scopes that are still inside it move to its parent.
    pub(crate) fn close(&mut self, tasks: &mut Tasks, index: u32) -> Scope {
        let closed = self.open[index as usize].take().expect(OPEN);
        self.len -= 1;
        // Only a newer scope can be inside it.
        let mut inner = closed.newer;
        while inner != NONE {
            let scope = &mut self[inner];
            if scope.parent == index {
                scope.parent = closed.parent;
            }
            inner = scope.newer;
        }
        match closed.newer {
            NONE => tasks[closed.task].newest_scope = closed.older,
            newer => self[newer].older = closed.older,
        }
        if closed.older != NONE {
            self[closed.older].newer = closed.newer;
        }
        for wait in tasks[closed.task].waits_mut().filter(|wait| wait.scope == index) {
            wait.scope = closed.parent;
        }
        closed
    }

    /// The scope of that name, if it is open.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Scope> {
        self.open.get_mut(index as usize)?.as_mut()
    }

    /// Whether the scope of that index is open and is a guard on that slot of the deadline table.
    pub(crate) fn guards(&self, index: u32, slot: u32) -> bool {
        let scope = self.open.get(index as usize).and_then(Option::as_ref);
        let is_it = |kind| matches!(kind, ScopeKind::Guard { slot: Some(own), .. } if own == slot);
        scope.is_some_and(|scope| is_it(scope.kind))
    }

    /// The index of the scope of that name, if it is open.
    pub(crate) fn find(&self, scope: ScopeId) -> Option<u32> {
        let found = self.open.get(scope.index as usize)?.as_ref()?;
        (found.number == scope.number).then_some(scope.index)
    }

    /// The name of a scope of that task, or of its root.
    pub(crate) fn name_of(&self, tasks: &Tasks, task: u32, index: u32) -> ScopeId {
        match index {
            ROOT => tasks.name_of(task).root(),
            index => ScopeId { index, number: self[index].number },
        }
    }

    /// `from` and the scopes around it, without the root.
    pub(crate) fn around(&self, from: u32) -> impl Iterator<Item = (u32, &Scope)> {
        let next = |index: u32| (index != ROOT).then(|| (index, &self[index]));
        std::iter::successors(next(from), move |(_, scope)| next(scope.parent))
    }

    /// The scopes of a task, newest first.
    pub(crate) fn of(&self, tasks: &Tasks, task: u32) -> impl Iterator<Item = (u32, &Scope)> {
        let next = |index: u32| (index != NONE).then(|| (index, &self[index]));
        std::iter::successors(next(tasks[task].newest_scope), move |(_, scope)| next(scope.older))
    }

    /// The nearest timeout at or around `from`, or [`ROOT`].
    pub(crate) fn nearest_timeout(&self, from: u32) -> u32 {
        let is_timeout =
            |scope: &Scope| matches!(scope.kind, ScopeKind::Timeout | ScopeKind::Guard { .. });
        self.around(from).find(|(_, scope)| is_timeout(scope)).map_or(ROOT, |(index, _)| index)
    }
}
