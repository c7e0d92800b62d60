//! What a connection deadline keeps for its guards: their scope, and where that hangs.
//!
//! In a box, made by the first guard: a deadline that is only armed, as that of a connection which
//! waits, has none. It opens and closes nothing.

use std::cell::{Cell, OnceCell, RefCell};
use std::mem;
use std::num::NonZeroU64;
use std::rc::Rc;

use crate::gate;
use crate::protocol::{ROOT, ScopeId, TaskRef, Ticket};
use crate::scope::Opener;

#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The number of the scope, once it is open.
    serial: Cell<Option<NonZeroU64>>,
    /// The task on whose root it hangs; `None`: it hangs elsewhere.
    root: Cell<Option<NonZeroU64>>,
    /// The task in which the scope hangs, and on what, if that is no root.
    place: Cell<Option<(TaskRef, ScopeId)>>,
    /// The place of the scope; before, that of the ticket with which it is asked for.
    index: Cell<u32>,
    /// A guard runs.
    pub(super) guards: Cell<bool>,
    /// The kernel was asked for the scope, and may have one that names the slot.
    pub(super) asked: Cell<bool>,
    /// The last post that armed the deadline.
    pub(super) arm: Cell<u64>,
    /// The scopes of guards that run inside another one, if any did: few deadlines have them, and
    /// the drop of each is to be short.
    nested: OnceCell<Rc<Nest>>,
}

/// Their places. Nobody shares it: of an `Rc` the rest of the drop is out of line.
type Nest = RefCell<Vec<Nested>>;

/// A place for what opens the scope of a guard inside another one.
#[derive(Debug)]
enum Nested {
    Free,
    /// It is being polled, which may begin another guard.
    Lent,
    Here(Opener),
}

impl Nested {
    fn replace(&mut self, other: Nested) -> Option<Opener> {
        match mem::replace(self, other) {
            Nested::Here(opener) => Some(opener),
            Nested::Free | Nested::Lent => None,
        }
    }
}

impl Kept {
    /// The scope, if it is open. The epoch is that of the deadline.
    #[inline]
    pub(super) fn scope(&self, epoch: u32) -> Option<ScopeId> {
        Some(ScopeId { index: self.index.get(), epoch, serial: self.serial.get()? })
    }

    /// The same, if it hangs where this is called.
    #[inline]
    pub(super) fn scope_here(&self, epoch: u32) -> Option<ScopeId> {
        let scope = self.scope(epoch)?;
        let here = gate::scope()?;
        let same = match self.root.get() {
            // A root is its task's alone.
            Some(task) => here == ScopeId { index: ROOT, epoch, serial: task },
            // Another scope may be polled in another task now.
            None => {
                let (task, parent) = self.place.get()?;
                parent == here && gate::task() == Some(task)
            }
        };
        same.then_some(scope)
    }

    /// Whether it hangs in that task.
    pub(super) fn is_in(&self, task: Option<TaskRef>) -> bool {
        let kept = self.root.get().or_else(|| self.place.get().map(|(task, _)| task.serial));
        kept.is_some() && kept == task.map(|task| task.serial)
    }

    /// Where it hangs, or will when it is open. Whether it hung elsewhere.
    pub(super) fn hang(&self, task: TaskRef, parent: ScopeId) -> bool {
        if parent.index == ROOT {
            return self.root.replace(Some(parent.serial)) != Some(parent.serial);
        }
        let earlier = self.place.replace(Some((task, parent)));
        self.root.take().is_some() || earlier != Some((task, parent))
    }

    /// It is open.
    pub(super) fn open(&self, scope: ScopeId) {
        self.serial.set(Some(scope.serial));
        self.index.set(scope.index);
    }

    /// It is asked for: where the answer will be. Gives the rest of that name.
    pub(super) fn ask(&self, ticket: Option<Ticket>) -> Option<NonZeroU64> {
        let ticket = ticket?;
        self.index.set(ticket.index);
        Some(ticket.serial)
    }

    /// That ticket.
    pub(super) fn ticket(&self, serial: Option<NonZeroU64>, epoch: u32) -> Option<Ticket> {
        Some(Ticket { index: self.index.get(), epoch, serial: serial? })
    }

    /// Forgets it; gives it to be closed.
    pub(super) fn take(&self, epoch: u32) -> Option<ScopeId> {
        let scope = self.scope(epoch);
        self.serial.set(None);
        scope
    }

    fn nested(&self) -> &Nest {
        self.nested.get_or_init(Rc::default)
    }

    /// A guard begins inside another one. Gives its place among such guards.
    pub(super) fn nest(&self, opener: Opener) -> u32 {
        let mut nested = self.nested().borrow_mut();
        let free = nested.iter().position(|place| matches!(place, Nested::Free));
        let place = free.unwrap_or(nested.len());
        match nested.get_mut(place) {
            Some(free) => *free = Nested::Here(opener),
            None => nested.push(Nested::Here(opener)),
        }
        u32::try_from(place).expect("fewer than 2^32 guards")
    }

    /// What that guard has, to be [given back](Kept::unlend): it may be polled in between.
    pub(super) fn lend(&self, place: u32) -> Option<Opener> {
        self.nested().borrow_mut()[place as usize].replace(Nested::Lent)
    }

    pub(super) fn unlend(&self, place: u32, opener: Opener) {
        let earlier = self.nested().borrow_mut()[place as usize].replace(Nested::Here(opener));
        debug_assert!(earlier.is_none(), "it was lent");
    }

    /// That guard ends: what it has, if that is not lent.
    pub(super) fn end_nested(&self, place: u32) -> Option<Opener> {
        self.nested().borrow_mut()[place as usize].replace(Nested::Free)
    }
}
