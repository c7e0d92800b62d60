//! The deadline table: when each connection deadline of a kernel is due, and whose it is.
//!
//! Most deadlines are set, not reached, and set anew, so setting one is a store. The kernel scans
//! the table once a tick, or when one is fired, which is O(deadlines). It is not a timer heap: a
//! deadline may fire up to a tick late.

use std::cell::{Cell, RefCell};
use std::mem;

use super::names::ScopeId;
use crate::time::Time;

/// In place of a time: the deadline has fired and was not set since.
const FIRED: Time = Time::from_micros(u64::MAX - 1);

/// A deadline that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When it was due, not when that was noticed.
    pub deadline: Time,
    /// Its number in the log.
    pub number: u32,
    /// Its slot.
    pub slot: u32,
    /// The scope that fires: around its task, or of the guard that is running.
    pub scope: ScopeId,
}

/// What a deadline was before it was set or cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Was {
    /// Not set.
    Unset,
    /// Set, and not fired yet.
    Armed,
    /// Fired since it was set.
    Fired,
}

/// The connection deadlines of one kernel, shared with the tasks that set them.
#[derive(Debug, Default)]
pub struct DeadlineTable {
    /// Connection deadlines that were ever made.
    made: Cell<u32>,
    slots: RefCell<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    /// When each slot is due; `NEVER` if it is not set, or free.
    at: Vec<Time>,
    owners: Vec<(Option<ScopeId>, u32)>,
    free: Vec<u32>,
    /// Slots that are due at some time.
    armed: usize,
    /// No slot is due before this. It may be too early after a store, which costs one scan that
    /// finds nothing; it is never too late.
    soonest: Time,
}

fn is_armed(at: Time) -> bool {
    at < FIRED
}

impl Slots {
    fn set(&mut self, slot: u32, at: Time) -> Time {
        let before = mem::replace(&mut self.at[slot as usize], at);
        if is_armed(at) {
            self.soonest = if self.armed == 0 { at } else { self.soonest.min(at) };
            self.armed += 1;
        }
        self.armed -= usize::from(is_armed(before));
        before
    }
}

/// What tasks use. Each is O(1).
impl DeadlineTable {
    /// Makes a deadline, not set and without a scope: its slot and its number.
    pub fn make(&self) -> (u32, u32) {
        let number = self.made.get().wrapping_add(1);
        self.made.set(number);
        let (slots, owner) = (&mut *self.slots.borrow_mut(), (None, number));
        if let Some(slot) = slots.free.pop() {
            slots.owners[slot as usize] = owner;
            return (slot, number);
        }
        slots.at.push(Time::NEVER);
        slots.owners.push(owner);
        let slot = u32::try_from(slots.at.len() - 1).expect("fewer than 2^32 deadlines");
        (slot, number)
    }

    /// Sets a deadline, also to [`Time::NEVER`]. Gives what it was.
    #[inline]
    pub fn set(&self, slot: u32, at: Time) -> Was {
        let at = if is_armed(at) { at } else { Time::NEVER };
        match self.slots.borrow_mut().set(slot, at) {
            Time::NEVER => Was::Unset,
            FIRED => Was::Fired,
            _ => Was::Armed,
        }
    }

    /// Has the table scanned at the kernel's next look, and not when a tick has passed.
    pub(crate) fn hurry(&self) {
        self.slots.borrow_mut().soonest = Time::ZERO;
    }

    /// Takes a deadline back, unless it has fired. Gives what it was.
    #[inline]
    pub(crate) fn clear(&self, slot: u32) -> Was {
        if self.has_fired(slot) { Was::Fired } else { self.set(slot, Time::NEVER) }
    }

    /// Whether a deadline has fired since it was set last.
    pub(crate) fn has_fired(&self, slot: u32) -> bool {
        self.slots.borrow().at[slot as usize] == FIRED
    }

    /// Sets the scope that fires when the deadline does.
    #[inline]
    pub(crate) fn set_scope(&self, slot: u32, scope: ScopeId) {
        self.slots.borrow_mut().owners[slot as usize].0 = Some(scope);
    }

    /// A deadline is gone.
    pub(crate) fn release(&self, slot: u32) {
        let mut slots = self.slots.borrow_mut();
        slots.set(slot, Time::NEVER);
        slots.free.push(slot);
    }
}

/// What a kernel uses.
impl DeadlineTable {
    /// When a deadline is due; [`Time::NEVER`] if it is not set or has fired.
    #[must_use]
    pub fn at(&self, slot: u32) -> Time {
        let at = self.slots.borrow().at[slot as usize];
        if is_armed(at) { at } else { Time::NEVER }
    }

    /// The point before which no scan can find anything, if any deadline is set; [`Time::ZERO`] if
    /// the next look is to scan.
    #[inline]
    #[must_use]
    pub fn soonest(&self) -> Option<Time> {
        let slots = self.slots.borrow();
        (slots.armed > 0).then_some(slots.soonest)
    }

    /// How many deadlines are set.
    #[must_use]
    pub fn armed(&self) -> usize {
        self.slots.borrow().armed
    }

    /// How many deadlines exist, set or not.
    #[must_use]
    pub fn alive(&self) -> usize {
        let slots = self.slots.borrow();
        slots.at.len() - slots.free.len()
    }

    /// Appends every deadline that is due at `now`, which has fired then: soonest first, of equal
    /// ones in the order in which they were made. O(slots).
    pub fn scan(&self, now: Time, due: &mut Vec<Due>) {
        let Slots { at, owners, armed, soonest, .. } = &mut *self.slots.borrow_mut();
        *soonest = Time::NEVER;
        for (slot, at) in (0..).zip(at) {
            if *at <= now {
                let (scope, number) = owners[slot as usize];
                let deadline = mem::replace(at, FIRED);
                *armed -= 1;
                due.extend(scope.map(|scope| Due { deadline, number, slot, scope }));
            } else if *at < *soonest {
                *soonest = *at;
            }
        }
        due.sort_unstable_by_key(|due| (due.deadline, due.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    fn table(deadlines: u32) -> DeadlineTable {
        let table = DeadlineTable::default();
        for slot in 0..deadlines {
            assert_eq!(table.make(), (slot, slot + 1));
            table.set_scope(slot, ScopeId::new(0, 1));
        }
        table
    }

    fn fired(table: &DeadlineTable, now: u64) -> Vec<(u64, u32)> {
        let mut due = Vec::new();
        table.scan(us(now), &mut due);
        due.iter().map(|due| (due.deadline.as_micros(), due.slot)).collect()
    }

    #[test]
    fn a_scan_fires_what_is_due_by_time_and_then_by_number_and_nothing_else() {
        let table = table(5);
        for (slot, at) in [(0, 30), (1, 20), (2, 40), (3, 20), (4, 99)] {
            table.set(slot, us(at));
        }
        assert_eq!(fired(&table, 19), []);
        assert_eq!(fired(&table, 30), [(20, 1), (20, 3), (30, 0)]);
        assert_eq!((table.soonest(), table.armed()), (Some(us(40)), 2));
        assert!(table.has_fired(1) && !table.has_fired(2));
        assert_eq!((table.set(1, us(50)), table.set(1, us(60))), (Was::Fired, Was::Armed));
    }

    #[test]
    fn clearing_the_soonest_leaves_a_bound_that_is_early_never_late() {
        let table = table(2);
        table.set(0, us(10));
        table.set(1, us(50));
        table.clear(0);
        assert_eq!(table.soonest(), Some(us(10)));
        assert_eq!(fired(&table, 10), []);
        assert_eq!(table.soonest(), Some(us(50)));
        table.clear(1);
        assert_eq!(table.soonest(), None);
        table.set(0, us(70));
        assert_eq!(table.soonest(), Some(us(70)));
    }

    #[test]
    fn a_slot_is_used_again_and_forgets_what_it_was() {
        let table = table(1);
        table.set(0, us(10));
        assert_eq!(fired(&table, 10), [(10, 0)]);
        table.release(0);
        assert_eq!((table.alive(), table.armed()), (0, 0));
        assert_eq!(table.make(), (0, 2));
        assert!(!table.has_fired(0));
        assert_eq!(table.at(0), Time::NEVER);
    }
}
