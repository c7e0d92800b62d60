//! The records at the gate: of a wait, and of a scope.

use std::rc::Rc;
use std::task::Waker;

use super::interrupt::Interrupt;
use super::names::{Direction, HandleId, OfScope, OfWait, ScopeId, Site, TaskId};
use super::protocol::{Parked, Reply, ScopeKind, Trap};
use super::queue::Queue;
use super::table::{Links, List, Table};
use crate::time::Time;

/// A wait, from the poll that files it until its result is read or its future is dropped. There is
/// no other place for a trap, a parked wait or a result.
#[derive(Debug)]
pub struct Wait {
    /// The scope in which it was filed, or the nearest one around that which is open: its index.
    pub scope: u32,
    /// The place of its task in the table of its kernel.
    pub task: u32,
    /// How far it is.
    pub state: WaitState,
    /// Where the trap was made.
    pub site: Site,
    /// Its place in the list of its scope.
    pub(crate) beside: Links,
    /// Its place in the queue in which it stands.
    pub in_queue: Links,
    /// A combinator's waker, to be called when the wait ends.
    pub waker: Option<Waker>,
}

/// How far a wait is.
#[derive(Debug)]
pub enum WaitState {
    /// The kernel has not seen it.
    Filed(Trap),
    /// It has blocked.
    Parked(On),
    /// It has its result.
    Done(Reply),
}

/// What a parked wait waits for.
#[derive(Debug)]
pub enum On {
    /// The end of the run in which it was filed; whether it is a sleep with a span of zero.
    Yield {
        /// It replies with the time.
        zero: bool,
    },
    /// That timer.
    Sleep(u32),
    /// That descriptor.
    Io(HandleId, Direction),
    /// A wake or a permit; whether an unread one is kept if nobody else waits.
    Queue(Rc<Queue>, bool),
    /// To be unparked; whether something outside the kernel will do that.
    Park(Parked, bool),
}

impl Wait {
    /// Whether it has blocked and not ended.
    #[inline]
    #[must_use]
    pub fn is_parked(&self) -> bool {
        matches!(self.state, WaitState::Parked(_))
    }

    /// Whether it has its result.
    #[must_use]
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, WaitState::Done(_))
    }

    /// The interrupt that it ended with, if it did.
    #[must_use]
    pub fn interrupt(&self) -> Option<&Interrupt> {
        match &self.state {
            WaitState::Done(Reply::Interrupt(interrupt)) => Some(interrupt),
            _ => None,
        }
    }
}

/// A scope: what is filed inside it can be interrupted together.
#[derive(Debug)]
pub struct Scope {
    /// What it is for.
    pub kind: ScopeKind,
    /// Scopes are numbered from 1 in the order of their opening; 0 for those that have no number.
    /// Of the scope around a task it is the number of the task.
    pub number: u64,
    /// The scope around its task: an index.
    pub root: u32,
    /// The scope around it: an index, or [`NONE`](super::table::NONE).
    pub parent: u32,
    /// The scopes inside it.
    pub(crate) children: List,
    /// Its place among the scopes of its parent.
    pub(crate) beside: Links,
    /// The waits inside it, without those of the scopes inside it.
    pub(crate) waits: List,
    /// Its own deadline, unless that is in the deadline table.
    pub deadline: Time,
    /// Its timer in the heap, or [`NONE`](super::table::NONE).
    pub timer: u32,
    /// Of a root: the place of the task in the table of its kernel.
    pub task: u32,
    /// Of a root: the number of the kernel.
    pub epoch: u32,
    /// Where it was opened.
    pub site: Site,
    /// The line that opened it.
    pub line: u64,
    /// Of a root: whether its task is polled when the shutdown begins.
    pub watches_shutdown: bool,
    /// What has fired, here or around it.
    pub(crate) interrupts: Option<Box<Interrupts>>,
}

/// What only a scope has that fired, or a branch inside one.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    /// It is a source: it has fired.
    pub(crate) fired: Option<Fired>,
    /// The sources that were pending here since they fired: the scope itself, or scopes around it
    /// if it is a branch.
    pub(crate) sources: Vec<Source>,
}

/// A source in one place.
#[derive(Debug)]
pub(crate) struct Source {
    scope: ScopeId,
    /// It is pending here now.
    is_pending: bool,
    /// How many waits inside have taken it, without those that nobody read.
    taken: u32,
}

/// A source of interrupts: a scope that fired.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fired {
    /// Its rank among all that fired on this thread.
    pub order: u64,
    /// Its `fire` or `cancel` line.
    pub line: u64,
    /// Who cancelled.
    pub by: Option<TaskId>,
    /// Why.
    pub reason: &'static str,
}

impl Scope {
    /// How it fired, if it has.
    #[must_use]
    pub fn fired(&self) -> Option<&Fired> {
        self.interrupts.as_ref()?.fired.as_ref()
    }

    /// How it fired, to be changed.
    pub fn fired_mut(&mut self) -> Option<&mut Fired> {
        self.interrupts.as_mut()?.fired.as_mut()
    }

    fn source(&mut self, source: ScopeId) -> Option<&mut Source> {
        self.interrupts.as_mut()?.sources.iter_mut().find(|it| it.scope == source)
    }

    /// Whether it has fired, and a wait has taken that and not given it back.
    #[must_use]
    pub fn was_taken(&self, own: ScopeId) -> bool {
        let taken = |it: &Source| it.scope == own && it.taken > 0;
        self.interrupts.as_ref().is_some_and(|it| it.sources.iter().any(taken))
    }

    pub(crate) fn has_pending(&self, source: ScopeId) -> bool {
        let has = |it: &Source| it.scope == source && it.is_pending;
        self.interrupts.as_ref().is_some_and(|it| it.sources.iter().any(has))
    }

    pub(crate) fn add_pending(&mut self, source: ScopeId) {
        if let Some(it) = self.source(source) {
            it.is_pending = true;
            return;
        }
        let it = Source { scope: source, is_pending: true, taken: 0 };
        self.interrupts.get_or_insert_default().sources.push(it);
    }

    /// A wait inside takes it.
    pub(crate) fn take_pending(&mut self, source: ScopeId) {
        if let Some(it) = self.source(source) {
            it.is_pending = false;
            it.taken += 1;
        }
    }

    /// A wait inside has not read it: it is pending again if nobody else inside has it.
    pub(crate) fn put_back(&mut self, source: ScopeId) {
        if let Some(it) = self.source(source) {
            it.taken = it.taken.saturating_sub(1);
            it.is_pending |= it.taken == 0;
        }
    }

    pub(crate) fn forget(&mut self, source: ScopeId) {
        if let Some(it) = &mut self.interrupts {
            it.sources.retain(|other| other.scope != source);
        }
    }
}

/// All waits and scopes of a thread.
#[derive(Debug, Default)]
pub struct Records {
    /// The waits.
    pub waits: Table<OfWait, Wait>,
    /// The scopes.
    pub scopes: Table<OfScope, Scope>,
    /// How many scopes are open that have fired.
    pub fired: usize,
    /// The rank of the last one that fired.
    pub(crate) order: u64,
}
