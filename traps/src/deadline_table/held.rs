//! The arms of a run that are not stored yet.
//!
//! Reads no clock and knows no column.

use std::cell::Cell;

/// How many are held at the most beside the last.
const MOST: usize = 15;
/// In place of a slot.
const NOTHING: u32 = u32::MAX;

struct Arm {
    /// `NOTHING`, if none is held.
    slot: Cell<u32>,
    span: Cell<u64>,
}

impl Arm {
    fn none() -> Arm {
        Arm { slot: Cell::new(NOTHING), span: Cell::new(0) }
    }

    #[inline(always)]
    fn set(&self, slot: u32, span: u64) {
        self.slot.set(slot);
        self.span.set(span);
    }
}

/// Arms, in their order. What a span is counted from is the matter of who stores it.
pub(super) struct Held {
    /// In a place of its own: it is mostly the only one.
    last: Arm,
    count: Cell<usize>,
    earlier: [Arm; MOST],
}

impl Held {
    pub(super) fn new() -> Held {
        let earlier = std::array::from_fn(|_| Arm::none());
        Held { last: Arm::none(), count: Cell::new(0), earlier }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.last.slot.get() == NOTHING
    }

    /// Whether the arm that was held last is of that slot.
    #[inline(always)]
    pub(super) fn is_last(&self, slot: u32) -> bool {
        self.last.slot.get() == slot
    }

    /// Another span for the last one.
    #[inline(always)]
    pub(super) fn set_last(&self, span: u64) {
        self.last.span.set(span);
    }

    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.count.get() < MOST
    }

    /// Holds one more; there is room.
    #[inline(always)]
    pub(super) fn push(&self, slot: u32, span: u64) {
        if !self.is_empty() {
            let count = self.count.get();
            self.earlier[count].set(self.last.slot.get(), self.last.span.get());
            self.count.set(count + 1);
        }
        self.last.set(slot, span);
    }

    /// Forgets the arms of that slot, each of which `was` is told of; whether there were any.
    #[inline]
    pub(super) fn forget(&self, slot: u32, mut was: impl FnMut(u64)) -> bool {
        if self.count.get() > 0 {
            return self.forget_any(slot, &mut was);
        }
        let found = self.is_last(slot);
        if found {
            self.last.slot.set(NOTHING);
            was(self.last.span.get());
        }
        found
    }

    #[inline(never)]
    fn forget_any(&self, slot: u32, was: &mut dyn FnMut(u64)) -> bool {
        let before = self.count.replace(0);
        let (last, span) = (self.last.slot.replace(NOTHING), self.last.span.get());
        let earlier = self.earlier[..before].iter().map(|arm| (arm.slot.get(), arm.span.get()));
        let mut found = false;
        for (other, span) in earlier.chain([(last, span)]) {
            if other == slot {
                found = true;
                was(span);
            } else {
                // It lands where this one was, or before.
                self.push(other, span);
            }
        }
        found
    }

    /// Hands all of them over, in their order: of two of one slot the later one stands. There is
    /// one at least.
    #[inline(always)]
    pub(super) fn drain(&self, mut store: impl FnMut(u32, u64)) {
        if self.count.get() > 0 {
            self.drain_earlier(&mut store);
        }
        store(self.last.slot.replace(NOTHING), self.last.span.get());
    }

    #[inline(never)]
    fn drain_earlier(&self, store: &mut impl FnMut(u32, u64)) {
        for arm in self.earlier.iter().take(self.count.replace(0)) {
            store(arm.slot.get(), arm.span.get());
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// So many can be held.
    pub(in super::super) const ALL: usize = MOST + 1;

    fn drained(held: &Held) -> Vec<(u32, u64)> {
        let mut all = Vec::new();
        if !held.is_empty() {
            held.drain(|slot, span| all.push((slot, span)));
        }
        all
    }

    #[test]
    fn arms_come_out_in_their_order_and_the_last_can_be_changed() {
        let held = Held::new();
        assert!(held.is_empty() && !held.is_last(0) && drained(&held).is_empty());
        held.push(7, 10);
        held.push(8, 20);
        assert!(held.is_last(8) && !held.is_last(7));
        held.set_last(30);
        held.push(7, 40);
        assert_eq!(drained(&held), [(7, 10), (8, 30), (7, 40)]);
        assert!(held.is_empty() && !held.is_last(7));
    }

    #[test]
    fn a_slot_is_forgotten_wherever_it_is_and_the_others_are_not() {
        let held = Held::new();
        let forget = |slot| held.forget(slot, drop);
        assert!(!forget(7));
        for slot in [7, 8, 7, 9, 7] {
            held.push(slot, u64::from(slot));
        }
        assert!(forget(7) && !forget(7));
        assert!(held.is_last(9));
        held.push(6, 6);
        assert!(!forget(5) && forget(8));
        assert_eq!(drained(&held), [(9, 9), (6, 6)]);
    }

    #[test]
    fn it_is_full_with_as_many_as_it_has_room_for() {
        let held = Held::new();
        for slot in 0..ALL as u32 {
            assert!(held.has_room());
            held.push(slot, 1);
        }
        assert!(!held.has_room());
        assert_eq!(drained(&held), (0..ALL as u32).map(|slot| (slot, 1)).collect::<Vec<_>>());
    }
}
