//! The scope table: the places, numbers and deadlines of scopes, shared by a kernel and its tasks.
//!
//! A timeout takes its name here and needs no trap for it. The tree of scopes is the kernel's.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::time::Duration;

use crate::deadline::DeadlineSlot;
use crate::deadline_table::DeadlineTable;
use crate::protocol::{DeadlineName, Left, Limit, Opening, Reading, ScopeId};
use crate::time::Time;

/// Much more than the coarse clock may be late. A shorter timeout reads the exact one.
const SHORT: Duration = Duration::from_millis(100);

/// The names of the scopes of one kernel, and what a timeout reads.
pub struct ScopeTable {
    epoch: u32,
    deadlines: Rc<DeadlineTable>,
    /// The clock, exact.
    clock: Box<dyn Fn() -> Time>,
    /// Every scope and deadline is to be told to the kernel, which has lines for it or counts its
    /// trap.
    told: Cell<bool>,
    /// Scopes are numbered in order of opening.
    numbers: Cell<u64>,
    /// How many places there are, and those of them that are free.
    places: Cell<u32>,
    free: RefCell<Vec<u32>>,
    /// By place: the scope there that was told or closed last, by its number, and the deadline
    /// that it has, if it was told of as a timeout.
    told_of: RefCell<Vec<(u64, Time)>>,
    /// Scopes and deadlines that the kernel was not told of.
    untold: Cell<u64>,
}

impl ScopeTable {
    /// An empty table of the kernel with that number. `clock` is exact.
    #[must_use]
    pub fn new(
        epoch: u32,
        deadlines: Rc<DeadlineTable>,
        clock: Box<dyn Fn() -> Time>,
    ) -> Rc<ScopeTable> {
        Rc::new(ScopeTable {
            epoch,
            deadlines,
            clock,
            told: Cell::new(true),
            numbers: Cell::new(0),
            places: Cell::new(0),
            free: RefCell::new(Vec::new()),
            told_of: RefCell::new(Vec::new()),
            untold: Cell::new(0),
        })
    }

    /// The deadlines of the same kernel.
    #[must_use]
    pub fn deadlines(&self) -> &Rc<DeadlineTable> {
        &self.deadlines
    }

    /// Whether every scope and connection deadline is told to the kernel from now on.
    pub fn tell(&self, told: bool) {
        self.told.set(told);
    }

    /// How many scopes and connection deadlines the kernel was not told of so far.
    #[must_use]
    pub fn untold(&self) -> u64 {
        self.untold.get()
    }

    /// Makes a connection deadline of the task at that place; `tell` is called with its name if the
    /// kernel is to be told. Else the line that it would have had keeps its number.
    #[inline]
    pub(crate) fn make_deadline(&self, task: u32, tell: impl FnOnce(DeadlineName)) -> DeadlineSlot {
        let (slot, number) = self.deadlines.make(task);
        let name = DeadlineName { slot, number, epoch: self.epoch, task };
        if self.told.get() {
            tell(name);
        } else {
            self.untold.set(self.untold.get() + 1);
            self.deadlines.count_untold(1);
        }
        DeadlineSlot::of(self.deadlines.clone(), name)
    }

    /// Names a scope that opens.
    #[inline]
    #[must_use]
    pub fn open(&self) -> ScopeId {
        let number = self.numbers.get() + 1;
        self.numbers.set(number);
        let serial = NonZeroU64::new(number).expect("numbers start at 1");
        ScopeId { index: self.take(), epoch: self.epoch, serial }
    }

    /// The number of the scope that was opened last.
    #[must_use]
    pub fn opened_so_far(&self) -> u64 {
        self.numbers.get()
    }

    /// Gives out a place. O(1), allocates nothing.
    #[inline]
    #[must_use]
    pub fn take(&self) -> u32 {
        if let Some(index) = self.free.borrow_mut().pop() {
            return index;
        }
        let index = self.places.get();
        self.places.set(index + 1);
        index
    }

    /// Takes a place back. O(1), allocates where more come back than ever did.
    #[inline]
    pub fn free(&self, index: u32) {
        self.free.borrow_mut().push(index);
    }

    /// The kernel was told of a timeout, which has that deadline.
    pub fn set_deadline(&self, scope: ScopeId, deadline: Time) {
        self.place_of(scope, |last| *last = (scope.serial.get(), deadline));
    }

    /// A scope was closed, of which the kernel is to be told, and perhaps that it opened.
    pub(crate) fn close(&self, scope: ScopeId) {
        if scope.epoch != self.epoch {
            return;
        }
        self.place_of(scope, |last| {
            // It may have been closed by the kernel, and its place be another's.
            if last.0 < scope.serial.get() {
                *last = (scope.serial.get(), Time::NEVER);
            }
        });
    }

    fn place_of(&self, scope: ScopeId, set: impl FnOnce(&mut (u64, Time))) {
        let told_of = &mut *self.told_of.borrow_mut();
        let place = scope.index as usize;
        if place >= told_of.len() {
            told_of.resize(place + 1, (0, Time::NEVER));
        }
        set(&mut told_of[place]);
    }

    /// Whether a timeout that the kernel is being told of was closed meanwhile. To be asked before
    /// [`ScopeTable::set_deadline`], after which it is true of each.
    #[must_use]
    pub fn is_closed(&self, scope: ScopeId) -> bool {
        self.deadline(scope).is_some()
    }

    /// That deadline; `None` if the kernel has yet to be told.
    pub(crate) fn deadline(&self, scope: ScopeId) -> Option<Time> {
        let told_of = self.told_of.borrow();
        let (serial, deadline) = *told_of.get(scope.index as usize)?;
        (serial == scope.serial.get()).then_some(deadline)
    }

    /// What a limit counts from.
    #[inline]
    pub(crate) fn reading(&self, limit: Limit) -> Reading {
        match limit {
            Limit::After(span) if span < SHORT => Reading::Exact((self.clock)()),
            Limit::After(_) | Limit::At(_) => Reading::Bound(self.deadlines.now()),
            Limit::Never | Limit::Deadline { .. } => Reading::None,
        }
    }

    /// Lets a timeout go that the kernel was not told of, unless somebody wants to know of it or
    /// it may be over. The lines that it would have had keep their numbers.
    #[inline]
    pub(crate) fn take_back(&self, opening: &Opening, left: Left) -> bool {
        if self.told.get() || matches!(left, Left::Value { by } if may_be_over(opening, by)) {
            return false;
        }
        self.free(opening.scope.index);
        self.untold.set(self.untold.get() + 1);
        self.deadlines.count_untold(2);
        true
    }
}

/// Whether the deadline may have passed by then.
#[inline]
fn may_be_over(opening: &Opening, by: Time) -> bool {
    let earliest = match (opening.limit, opening.reading) {
        // It was opened before, but not by so much.
        (Limit::After(span), Reading::Bound(bound)) => bound + (span - SHORT),
        (Limit::After(span), Reading::Exact(now)) => now + span,
        (Limit::At(point), _) => point,
        _ => return false,
    };
    earliest <= by
}

impl fmt::Debug for ScopeTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeTable").field("opened", &self.numbers).finish_non_exhaustive()
    }
}
