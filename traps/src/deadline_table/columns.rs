//! The columns of the deadline table: slots, holes, and the scan.
//!
//! A pure structure: reads no clock and knows nothing of tasks.

use std::mem;

use super::mark::{self, END, is_due};
use crate::time::Time;

/// From here on a place is far; the rest of it is the number of a connection deadline.
const FAR: u32 = 1 << 31;
const HOLE: u32 = u32::MAX;
/// Ends the list of holes.
const NO_SLOT: u32 = u32::MAX;
/// Slots whose minimum a scan takes in one go: one branch for all of them.
const BLOCK: usize = 64;

/// Where the deadline of a slot waits; one `u32` in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: the slot is free.
    Hole,
    /// In the table.
    Far,
    /// In the kernel's heap, at that position.
    Near(usize),
}

/// Of a slot: what a scan needs only where something is due.
#[derive(Clone, Copy, Debug)]
struct About {
    /// Whose it is, in bits that only the kernel can read; in a hole, the next hole.
    owner: u32,
    /// The position in the heap, or `FAR` and a number, or `HOLE`.
    place: u32,
}

/// The table itself: a slot is 16 bytes in two columns, so that a scan reads only the times.
#[derive(Debug)]
pub struct Columns {
    /// When the deadline of a slot is due, with a mark if it is near or has fired; `NEVER` if the
    /// slot is a hole or is disarmed.
    at: Vec<Time>,
    about: Vec<About>,
    /// The first hole.
    free: u32,
    /// Slots that are no holes.
    len: usize,
    /// Slots that are due at some time.
    waiting: usize,
    /// Nothing here is due before this. Exact after a scan; after a disarm or a re-arm it may be
    /// too early, which costs one scan that moves nothing; it is never too late. `NEVER` exactly
    /// when nothing is waiting.
    soonest: Time,
    stores: u64,
}

impl Columns {
    /// Allocates nothing.
    pub(super) fn new() -> Columns {
        Columns {
            at: Vec::new(),
            about: Vec::new(),
            free: NO_SLOT,
            len: 0,
            waiting: 0,
            soonest: Time::NEVER,
            stores: 0,
        }
    }

    /// Gives out a slot, as a far one that is never due. O(1), allocates if there is no hole.
    ///
    /// # Panics
    ///
    /// If 2^31 slots are in use.
    #[inline]
    pub fn claim(&mut self, owner: u32, number: u32) -> u32 {
        let slot = self.free;
        self.len += 1;
        let about = About { owner, place: FAR | number };
        match self.about.get_mut(slot as usize) {
            Some(hole) => {
                self.free = mem::replace(hole, about).owner;
                slot
            }
            None => self.add(about),
        }
    }

    /// The same where there is no hole.
    #[inline(never)]
    fn add(&mut self, about: About) -> u32 {
        assert!(self.at.len() < FAR as usize, "rule: a kernel has fewer than 2^31 timers");
        self.at.push(Time::NEVER);
        self.about.push(about);
        (self.at.len() - 1) as u32
    }

    /// Makes a hole of a slot that is not near. O(1).
    #[inline]
    pub fn release(&mut self, slot: u32) {
        let (at, about) = (&mut self.at[slot as usize], &mut self.about[slot as usize]);
        let before = mem::replace(at, Time::NEVER);
        *about = About { owner: self.free, place: HOLE };
        self.free = slot;
        if is_due(before) {
            self.waiting -= 1;
        }
        self.len -= 1;
        if self.len == 0 && self.at.len() > BLOCK {
            // All holes: begin anew, not with a scan that may never come. (A short one may stay.)
            self.at.clear();
            self.about.clear();
            self.free = NO_SLOT;
        }
    }

    /// Something has a time.
    #[inline(always)]
    fn count_in(&mut self, at: Time) {
        self.stores += 1;
        if at < self.soonest {
            self.soonest = at;
        }
    }

    /// Sets a time in a slot that was claimed just now. O(1).
    #[inline]
    pub fn set(&mut self, slot: u32, at: Time) {
        if is_due(at) {
            self.at[slot as usize] = at;
            self.waiting += 1;
            self.count_in(at);
        }
    }

    /// Sets a time. O(1).
    #[inline]
    pub fn store(&mut self, slot: u32, at: Time) {
        let before = mem::replace(&mut self.at[slot as usize], at);
        if is_due(at) {
            self.waiting += 1;
            self.count_in(at);
        }
        if is_due(before) {
            self.waiting -= 1;
        }
    }

    /// Sets a deadline that waits here to a time, set or not, and gives it an owner. False, and
    /// nothing is changed, if it is near or has fired, or if that is no time.
    #[inline(always)]
    pub(super) fn rearm(&mut self, slot: u32, at: Time, owner: u32) -> bool {
        let slot = slot as usize;
        let (Some(before), Some(about)) = (self.at.get_mut(slot), self.about.get_mut(slot)) else {
            return false;
        };
        if about.place < FAR || mark::has_fired(*before) || !is_due(at) {
            return false;
        }
        self.waiting += usize::from(*before == Time::NEVER);
        (*before, about.owner) = (at, owner);
        self.count_in(at);
        true
    }

    /// Takes back a deadline that is set here, and gives it an owner. False, and nothing is
    /// changed, if it is not.
    #[inline(always)]
    pub(super) fn take_back(&mut self, slot: u32, owner: u32) -> bool {
        let slot = slot as usize;
        match (self.at.get_mut(slot), self.about.get_mut(slot)) {
            (Some(at), Some(about)) if is_due(*at) => (*at, about.owner) = (Time::NEVER, owner),
            _ => return false,
        }
        self.waiting -= 1;
        true
    }

    /// Gives a slot that is not near another owner; false if it is.
    #[inline]
    pub(super) fn give(&mut self, slot: u32, owner: u32) -> bool {
        let about = self.about.get_mut(slot as usize).filter(|about| about.place >= FAR);
        about.map(|about| about.owner = owner).is_some()
    }

    /// When the deadline of a far slot is due; `NEVER` if that has fired or is disarmed.
    #[inline]
    #[must_use]
    pub fn at(&self, slot: u32) -> Time {
        let at = self.at[slot as usize];
        if is_due(at) { at } else { Time::NEVER }
    }

    /// Whether it can be set here by a store: it is neither near nor has it fired. One that is not
    /// set gets that owner.
    #[inline(always)]
    pub(super) fn claim_far(&mut self, slot: u32, owner: impl FnOnce() -> u32) -> bool {
        match self.at.get(slot as usize) {
            Some(at) if is_due(*at) => true,
            Some(&Time::NEVER) => self.give(slot, owner()),
            _ => false,
        }
    }

    /// What it was set to here, also if it has come near or has fired since; `NEVER` if to nothing.
    #[must_use]
    pub(super) fn set_to(&self, slot: u32) -> Time {
        mark::off(self.at[slot as usize])
    }

    /// Whether a connection deadline has fired and was not set since.
    #[inline]
    #[must_use]
    pub fn has_fired(&self, slot: u32) -> bool {
        mark::has_fired(self.at[slot as usize])
    }

    /// Whose a slot is.
    #[inline]
    #[must_use]
    pub fn owner(&self, slot: u32) -> u32 {
        self.about[slot as usize].owner
    }

    /// Gives a slot another owner.
    #[inline]
    pub fn set_owner(&mut self, slot: u32, owner: u32) {
        self.about[slot as usize].owner = owner;
    }

    /// Where the deadline of a slot waits.
    #[inline]
    #[must_use]
    pub fn place(&self, slot: u32) -> Place {
        match self.about[slot as usize].place {
            HOLE => Place::Hole,
            far if far >= FAR => Place::Far,
            position => Place::Near(position as usize),
        }
    }

    /// The number of the connection deadline in a far slot.
    #[must_use]
    pub fn number(&self, slot: u32) -> u32 {
        self.about[slot as usize].place & !FAR
    }

    /// A connection deadline fires that was near, and was due at that time.
    pub fn fire(&mut self, slot: u32, number: u32, at: Time) {
        self.set_far(slot, number);
        self.at[slot as usize] = mark::fired(at);
    }

    /// A deadline that waits here is near from now on, and due at that time.
    pub fn draw_near(&mut self, slot: u32, at: Time) {
        self.store(slot, mark::near(at));
    }

    /// The deadline is at that position of the heap.
    #[inline]
    pub fn set_near(&mut self, slot: u32, position: usize) {
        self.about[slot as usize].place = position as u32;
    }

    /// The deadline is in the table again.
    #[inline]
    pub fn set_far(&mut self, slot: u32, number: u32) {
        self.about[slot as usize].place = FAR | number;
    }

    /// The slots that are not free, in order of their places.
    pub fn slots(&self) -> impl Iterator<Item = u32> {
        (0..self.about.len() as u32).filter(|slot| self.about[*slot as usize].place != HOLE)
    }

    /// Slots in use. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no slot is in use. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Slots that are due at some time. O(1).
    #[inline]
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Where nothing waits, what was the soonest matters no longer once it has passed. O(1).
    #[inline]
    pub fn forget_past(&mut self, now: Time) {
        if self.waiting == 0 && self.soonest <= now {
            self.soonest = Time::NEVER;
        }
    }

    /// Nothing is due before this; it may be too early, never too late. Until it has passed, or a
    /// scan, it is the least of all that was stored, in any order. O(1).
    #[inline]
    #[must_use]
    pub fn soonest(&self) -> Time {
        if self.waiting == 0 { Time::NEVER } else { self.soonest }
    }

    /// Arms and re-arms that were a store here, so far.
    #[must_use]
    pub fn stores(&self) -> u64 {
        self.stores
    }

    /// How long the columns are, free slots included.
    #[must_use]
    pub fn size(&self) -> usize {
        self.at.len()
    }

    /// Calls `due` for every slot that is due at `horizon` or before, which is near from now on,
    /// and learns `soonest` of the rest from the same pass. Visits the column of times, and of the
    /// rest only what is due.
    pub fn scan(&mut self, horizon: Time, mut due: impl FnMut(u32, u32, u32, Time)) {
        // Or what is marked would be due.
        let horizon = horizon.min(Time::from_micros(END.as_micros() - 1));
        let mut soonest = Time::NEVER;
        for start in (0..self.at.len()).step_by(BLOCK) {
            let end = self.at.len().min(start + BLOCK);
            let first = mark::earliest(&self.at[start..end]);
            if first > horizon {
                soonest = soonest.min(first);
                continue;
            }
            for slot in start..end {
                let at = self.at[slot];
                if at > horizon {
                    soonest = soonest.min(at);
                    continue;
                }
                self.at[slot] = mark::near(at);
                self.waiting -= 1;
                let About { owner, place } = self.about[slot];
                due(slot as u32, owner, place & !FAR, at);
            }
        }
        self.soonest = if self.waiting == 0 { Time::NEVER } else { soonest };
        self.trim();
    }

    /// Panics unless all is as the comments on the fields say, with `near` entries in the heap.
    #[doc(hidden)]
    pub fn assert_sound(&self, near: usize) {
        let mut holes = 0;
        let mut hole = self.free;
        while hole != NO_SLOT {
            assert_eq!(self.place(hole), Place::Hole);
            hole = self.about[hole as usize].owner;
            holes += 1;
        }
        let (mut far, mut waiting) = (0, 0);
        for (slot, at) in self.at.iter().enumerate() {
            let (place, fits) = (self.place(slot as u32), is_due(*at) || mark::has_fired(*at));
            let is_far = place == Place::Far;
            assert!(if is_far { fits || *at == Time::NEVER } else { !fits });
            assert!(place != Place::Hole || *at == Time::NEVER);
            assert!(!is_due(*at) || self.soonest <= *at);
            far += usize::from(is_far);
            waiting += usize::from(is_due(*at));
        }
        assert_eq!((self.at.len(), self.len), (holes + self.len, far + near));
        assert_eq!((self.waiting, self.soonest() == Time::NEVER), (waiting, waiting == 0));
    }

    /// Cuts the holes off the end of a table that is mostly holes, so that a peak is not paid for
    /// in every later scan. O(table), so only a scan may call it.
    fn trim(&mut self) {
        let is_hole = |about: &About| about.place == HOLE;
        if self.len >= self.at.len() / 4 || !self.about.last().is_some_and(is_hole) {
            return;
        }
        let last = self.about.iter().rposition(|about| !is_hole(about));
        let end = last.map_or(0, |last| last + 1);
        self.at.truncate(end);
        self.about.truncate(end);
        // The list went through the slots that are gone. Lowest first, so that the end empties.
        self.free = NO_SLOT;
        for (slot, about) in self.about.iter_mut().enumerate().rev() {
            if is_hole(about) {
                about.owner = mem::replace(&mut self.free, slot as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_armed_deadlines_cost_16_bytes_each_and_a_scan_visits_the_times_alone() {
        let mut columns = Columns::new();
        for number in 1..=1_000_000 {
            let slot = columns.claim(number, number);
            columns.store(slot, Time::from_micros(5_000_000 + u64::from(number)));
        }
        fn bytes<T>(column: &[T]) -> usize {
            size_of_val(column)
        }
        let Columns { at, about, .. } = &columns;
        assert_eq!(bytes(at) + bytes(about), 16_000_000);
        assert_eq!(bytes(at), 8_000_000); // the one column that a scan reads from end to end
        let mut due = Vec::new();
        columns.scan(Time::from_micros(5_000_003), |slot, owner, number, at| {
            due.push((slot, owner, number, at.as_micros()));
        });
        assert_eq!(due, [1, 2, 3].map(|n| (n - 1, n, n, 5_000_000 + u64::from(n))));
        assert_eq!((columns.waiting(), columns.soonest().as_micros()), (999_997, 5_000_004));
    }
}
