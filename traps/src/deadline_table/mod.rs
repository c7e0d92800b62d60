//! The deadline table: where deadlines that are far off lie, those of the kernel's own timers and
//! those of connections alike.
//!
//! Dense columns that a kernel scans and that a task may store into, without a trap. Nothing here
//! fires, and there is no order: what is due soon is the kernel's near heap.

use std::cell::{Cell, RefCell, RefMut};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use crate::time::Time;

mod columns;

pub use columns::{Columns, Place};

/// What [`Columns`] holds for a connection deadline that has fired and was not armed since.
pub const FIRED: Time = Time::from_micros(u64::MAX - 1);
/// Marks an owner as the scope of a connection deadline that guards.
pub const GUARD: u32 = 0b11 << 30;
/// Marks an owner as the task of a connection deadline that is armed without a guard.
pub const BARE: u32 = 0b10 << 30;

/// The deadlines of one kernel, shared with the connection deadlines that it gave out.
pub struct DeadlineTable {
    /// A reading that is never early, and late by a tick or two of a coarse clock.
    clock: Box<dyn Fn(Time) -> Time>,
    /// The kernel's last exact reading, for the clock to lean on.
    exact: Cell<Time>,
    /// In microseconds.
    tick: u64,
    /// Every arm and disarm is to be told to the kernel, which has a line for it.
    listening: Cell<bool>,
    /// All arms and disarms that were not told: their lines keep their numbers.
    untold: Cell<u64>,
    /// Those that were posted to the kernel, and those of them that it has heeded, in this order.
    posted: Cell<u64>,
    heeded: Cell<u64>,
    columns: RefCell<Columns>,
}

impl DeadlineTable {
    /// An empty table. `clock` is read by arms; it may be coarse, but never early.
    #[must_use]
    pub fn new(tick: Duration, clock: Box<dyn Fn(Time) -> Time>) -> Rc<DeadlineTable> {
        Rc::new(DeadlineTable {
            clock,
            exact: Cell::new(Time::ZERO),
            tick: (Time::ZERO + tick).as_micros(),
            listening: Cell::new(false),
            untold: Cell::new(0),
            posted: Cell::new(0),
            heeded: Cell::new(0),
            columns: RefCell::new(Columns::new()),
        })
    }

    /// The columns, for the kernel.
    #[inline]
    pub fn columns(&self) -> RefMut<'_, Columns> {
        self.columns.borrow_mut()
    }

    /// One tick from `now`: what is due before it is near.
    #[inline]
    #[must_use]
    pub fn horizon(&self, now: Time) -> Time {
        Time::from_micros(now.as_micros().saturating_add(self.tick))
    }

    /// The kernel has read its clock.
    #[inline]
    pub fn set_exact(&self, now: Time) {
        self.exact.set(now);
    }

    /// Whether arms and disarms are told to the kernel from now on.
    #[inline]
    pub fn listen(&self, listening: bool) {
        self.listening.set(listening);
    }

    /// How many arms and disarms the kernel was not told of so far.
    #[inline]
    #[must_use]
    pub fn untold(&self) -> u64 {
        self.untold.get()
    }

    /// So many lines are not told, of scopes that came and went.
    #[inline]
    pub(crate) fn count_untold(&self, lines: u64) {
        self.untold.set(self.untold.get() + lines);
    }

    /// Numbers a post to the kernel: what it is about is in flight until the kernel heeds it.
    pub(crate) fn post(&self) -> u64 {
        self.posted.set(self.posted.get() + 1);
        self.posted.get()
    }

    /// The kernel heeds the next post.
    pub fn heed(&self) {
        self.heeded.set(self.heeded.get() + 1);
    }

    /// Whether the kernel has yet to heed that post: then a store would overtake it.
    #[inline]
    pub(crate) fn is_in_flight(&self, post: u64) -> bool {
        self.heeded.get() < post
    }

    /// Reads the clock.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        (self.clock)(self.exact.get())
    }

    /// Sets a far deadline to a point a tick or more from `now`, or to `NEVER`: a store. False if
    /// it takes more than that; then the kernel is to be asked.
    #[inline]
    pub(crate) fn set(&self, slot: u32, at: Time, now: Time, owner: u32) -> bool {
        let simple = at >= self.horizon(now)
            && !self.listening.get()
            && self.columns.borrow_mut().rearm(slot, at, owner);
        self.untold.set(self.untold.get() + u64::from(simple));
        simple
    }

    /// Takes a far deadline back and gives it another owner. False as for `set`.
    #[inline]
    pub(crate) fn clear(&self, slot: u32, owner: u32) -> bool {
        let columns = &mut *self.columns.borrow_mut();
        let at = columns.at(slot);
        if columns.place(slot) != Place::Far || at == FIRED {
            return false;
        }
        if at != Time::NEVER {
            if self.listening.get() {
                return false;
            }
            self.untold.set(self.untold.get() + 1);
            columns.store(slot, Time::NEVER);
        }
        columns.set_owner(slot, owner);
        true
    }

    #[inline]
    pub(crate) fn has_fired(&self, slot: u32) -> bool {
        self.columns.borrow().at(slot) == FIRED
    }
}

impl fmt::Debug for DeadlineTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineTable").field("columns", &self.columns).finish_non_exhaustive()
    }
}
