//! The deadline table: when each connection deadline of a kernel is due, and which scope it fires.
//!
//! Most deadlines are set again before they are due, so setting one must be cheap: it is one store.
//! In exchange, the kernel scans the whole table, in O(deadlines), once a tick, or sooner if a task
//! fires a deadline. A timer heap would make each store O(log n). A deadline can therefore fire up
//! to one tick late.

use std::cell::{Cell, RefCell};
use std::mem;

use crate::core::table::ScopeId;
use crate::time::Time;

/// The value of a slot whose deadline has fired and was not set again.
const FIRED: Time = Time::from_micros(u64::MAX - 1);

/// A deadline that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The point at which the deadline was due, not the point at which the scan found it.
    pub deadline: Time,
    /// The number of the deadline in the log.
    pub number: u32,
    /// The slot of the deadline.
    pub slot: u32,
    /// What fires: the scope of the running guard, or else the task.
    pub scope: ScopeId,
}

/// The state of a deadline before it was set or cleared.
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
    /// The number of connection deadlines that were ever made.
    made: Cell<u32>,
    slots: RefCell<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    /// The point at which each slot is due. `NEVER` if the slot is not set, or free.
    at: Vec<Time>,
    /// What each deadline fires, and its number.
    owners: Vec<(ScopeId, u32)>,
    free: Vec<u32>,
    /// The number of slots that are set and have not fired.
    armed: usize,
    /// A lower bound: no slot is due before this point. It can be too early if a slot was set again
    /// or cleared, which costs one scan that finds nothing. It is never too late.
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

/// The methods for tasks. Each is O(1).
impl DeadlineTable {
    /// Makes a deadline that is not set. Returns its slot and its number.
    pub fn make(&self, scope: ScopeId) -> (u32, u32) {
        let number = self.made.get().wrapping_add(1);
        self.made.set(number);
        let (slots, owner) = (&mut *self.slots.borrow_mut(), (scope, number));
        if let Some(slot) = slots.free.pop() {
            slots.owners[slot as usize] = owner;
            return (slot, number);
        }
        slots.at.push(Time::NEVER);
        slots.owners.push(owner);
        let slot = u32::try_from(slots.at.len() - 1).expect("fewer than 2^32 deadlines");
        (slot, number)
    }

    /// Sets a deadline, or clears it with [`Time::NEVER`]. Returns its previous state.
    #[inline]
    pub fn set(&self, slot: u32, at: Time) -> Was {
        let at = if is_armed(at) { at } else { Time::NEVER };
        match self.slots.borrow_mut().set(slot, at) {
            Time::NEVER => Was::Unset,
            FIRED => Was::Fired,
            _ => Was::Armed,
        }
    }

    /// Makes the kernel scan the table in its next turn, instead of after a tick.
    pub(crate) fn hurry(&self) {
        self.slots.borrow_mut().soonest = Time::ZERO;
    }

    /// Clears a deadline, unless it has fired. Returns its previous state.
    #[inline]
    pub(crate) fn clear(&self, slot: u32) -> Was {
        if self.has_fired(slot) { Was::Fired } else { self.set(slot, Time::NEVER) }
    }

    /// Returns whether a deadline has fired since it was last set.
    pub(crate) fn has_fired(&self, slot: u32) -> bool {
        self.slots.borrow().at[slot as usize] == FIRED
    }

    /// Sets the scope, or the task, that fires when the deadline fires. Returns whether it is
    /// another one than before, and the deadline has fired in that.
    #[inline]
    pub(crate) fn set_scope(&self, slot: u32, scope: ScopeId) -> bool {
        let slots = &mut *self.slots.borrow_mut();
        let before = mem::replace(&mut slots.owners[slot as usize].0, scope);
        before != scope && slots.at[slot as usize] == FIRED
    }

    /// Returns the scope, or the task, that fires when the deadline fires, and the number of the
    /// deadline.
    #[inline]
    pub(crate) fn owner(&self, slot: u32) -> (ScopeId, u32) {
        self.slots.borrow().owners[slot as usize]
    }

    /// Frees the slot of a dropped deadline.
    pub(crate) fn release(&self, slot: u32) {
        let mut slots = self.slots.borrow_mut();
        slots.set(slot, Time::NEVER);
        slots.free.push(slot);
    }
}

/// The methods for kernels.
impl DeadlineTable {
    /// Returns the point at which a deadline is due. Returns [`Time::NEVER`] if it is not set or
    /// has fired.
    #[must_use]
    pub fn at(&self, slot: u32) -> Time {
        let at = self.slots.borrow().at[slot as usize];
        if is_armed(at) { at } else { Time::NEVER }
    }

    /// Returns the point before which a scan finds nothing, or `None` if no deadline is set.
    /// Returns [`Time::ZERO`] if the kernel must scan in its next turn.
    #[inline]
    #[must_use]
    pub fn soonest(&self) -> Option<Time> {
        let slots = self.slots.borrow();
        (slots.armed > 0).then_some(slots.soonest)
    }

    /// Lists the deadlines that are set: the point at which each is due, and its number. O(slots).
    #[must_use]
    pub fn list(&self) -> Vec<(Time, u32)> {
        let slots = self.slots.borrow();
        let each = slots.at.iter().zip(&slots.owners).map(|(at, (_, number))| (*at, *number));
        let mut armed: Vec<_> = each.filter(|(at, _)| is_armed(*at)).collect();
        armed.sort_unstable();
        armed
    }

    /// Returns the number of deadlines that are set.
    #[must_use]
    pub fn armed(&self) -> usize {
        self.slots.borrow().armed
    }

    /// Returns the number of deadlines that exist, set or not.
    #[must_use]
    pub fn alive(&self) -> usize {
        let slots = self.slots.borrow();
        slots.at.len() - slots.free.len()
    }

    /// Marks every deadline that is due at `now` as fired, and appends it to `due`: the soonest
    /// first; if equal, the older one. O(slots).
    pub fn scan(&self, now: Time, due: &mut Vec<Due>) {
        let Slots { at, owners, armed, soonest, .. } = &mut *self.slots.borrow_mut();
        *soonest = Time::NEVER;
        for (slot, at) in (0..).zip(at) {
            if *at <= now {
                let (scope, number) = owners[slot as usize];
                let deadline = mem::replace(at, FIRED);
                *armed -= 1;
                due.push(Due { deadline, number, slot, scope });
            } else if *at < *soonest {
                *soonest = *at;
            }
        }
        due.sort_unstable_by_key(|due| (due.deadline, due.number));
    }

    /// Checks that the armed slots are counted, that none is due before `soonest`, and that a free
    /// slot is not set. For tests: O(slots).
    ///
    /// # Panics
    ///
    /// Panics if an invariant is broken.
    pub fn check(&self) {
        let Slots { at, owners, free, armed, soonest } = &*self.slots.borrow();
        assert_eq!(at.len(), owners.len(), "each slot has its owner");
        let set = || at.iter().filter(|at| is_armed(**at));
        assert_eq!(*armed, set().count(), "the armed slots are counted");
        assert!(set().all(|at| soonest <= at), "a slot is due before {soonest}");
        let is_unset = |slot: &u32| at[*slot as usize] == Time::NEVER;
        assert!(free.iter().all(is_unset), "a free slot is not set");
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
            assert_eq!(table.make(ScopeId::new(0, 1)), (slot, slot + 1));
        }
        table
    }

    fn fired(table: &DeadlineTable, now: u64) -> Vec<(u64, u32)> {
        let mut due = Vec::new();
        table.scan(us(now), &mut due);
        table.check();
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
        table.check();
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
        table.check();
        assert_eq!((table.alive(), table.armed()), (0, 0));
        assert_eq!(table.make(ScopeId::new(0, 1)), (0, 2));
        assert!(!table.has_fired(0));
        assert_eq!(table.at(0), Time::NEVER);
    }
}
