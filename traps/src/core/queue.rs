//! A queue of waits, as a kernel and its tasks share it. First in, first out.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};

use super::names::TaskRef;
use super::table::List;

/// Who waits, and the permits that nobody waited for.
///
/// The waits are a list through their own records, so that one leaves the queue in O(1), wherever
/// it stands.
#[derive(Debug, Default)]
pub struct Queue {
    /// The parked waits, first come first. The kernel keeps it.
    pub line: Cell<List>,
    /// How many wait.
    pub len: Cell<u64>,
    /// Permits kept.
    pub permits: Cell<u32>,
    /// What it waits for has come: a wait is answered at once.
    pub over: Cell<bool>,
    /// What it is for, in the log.
    pub label: Cell<Label>,
    /// The number of a user's queue, in the log; 0 before it has one.
    pub number: Cell<u64>,
    /// What it is to its users, if it is more than a queue.
    pub primitive: OnceCell<Box<Primitive>>,
    /// The kernel whose tasks wait, or waited last; 0 for none.
    pub home: Cell<u32>,
}

/// What a queue is to its users, and who holds what its waiters want.
#[derive(Debug)]
pub struct Primitive {
    /// Its kind: `mutex`.
    pub kind: &'static str,
    /// Its name; empty if it has none.
    pub name: Cow<'static, str>,
    /// The tasks that have a lock or a permit now, the first come first; one with several is there
    /// several times.
    pub holders: RefCell<Vec<TaskRef>>,
}

/// What a queue is for, in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Label {
    /// What its users say.
    #[default]
    Queue,
    /// The end of the task of that number.
    Join(u64),
    /// Signals.
    Signal,
}

impl Queue {
    /// An empty queue for that purpose.
    #[must_use]
    pub fn labelled(label: Label) -> Queue {
        Queue { label: Cell::new(label), ..Queue::default() }
    }

    /// Keeps a permit for the next who comes; at most `u32::MAX` of them.
    pub fn keep_permit(&self) {
        self.permits.set(self.permits.get().saturating_add(1));
    }

    /// Takes a permit, if one is kept.
    #[must_use]
    pub fn take_permit(&self) -> bool {
        let left = self.permits.get().checked_sub(1);
        left.map(|left| self.permits.set(left)).is_some()
    }
}
