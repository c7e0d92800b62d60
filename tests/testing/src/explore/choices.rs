//! The decisions of one run, drawn according to its case.

use std::cell::{Cell, RefCell};

use traps::internal::liberty::Liberty;

use super::case::Case;

/// Draws the decisions of a case and counts them.
pub(super) struct Choices {
    case: Case,
    /// The number of decisions so far, including the usual ones.
    count: Cell<u64>,
    /// The number of decisions of each liberty.
    counts: [Cell<u64>; 6],
    /// The decisions that were not the usual ones: their numbers, from 1, and their liberties.
    unusual: RefCell<Vec<(u64, Liberty)>>,
}

impl Choices {
    pub(super) fn new(case: Case) -> Choices {
        Choices {
            case,
            count: Cell::new(0),
            counts: Default::default(),
            unusual: RefCell::default(),
        }
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.count.get()
    }

    pub(super) fn unusual(&self) -> Vec<(u64, Liberty)> {
        self.unusual.take()
    }

    /// Returns a number from 0 to `most`. Each liberty has its own sequence of numbers, so that
    /// leaving out another liberty does not change them.
    pub(super) fn draw(&self, liberty: Liberty, most: u64) -> u64 {
        let place = self.count.get() + 1;
        if most == 0 || place > self.case.decisions || !self.case.liberties.contains(&liberty) {
            return 0;
        }
        self.count.set(place);
        let count = &self.counts[liberty as usize];
        count.set(count.get() + 1);
        let stream = mixed(mixed(self.case.seed) ^ liberty as u64);
        let drawn = mixed(stream.wrapping_add(count.get()));
        let is_usual = is_usual(stream, drawn) || self.case.usual.contains(&place);
        let chosen = if is_usual { 0 } else { spread(mixed(drawn), most) };
        if chosen > 0 {
            self.unusual.borrow_mut().push((place, liberty));
        }
        chosen
    }
}

/// A seed takes some liberties never, some seldom and some always, because a uniform mixture rarely
/// finds failures that need one liberty often and another not at all.
fn is_usual(stream: u64, drawn: u64) -> bool {
    let out_of_16 = [0, 1, 4, 16][(stream >> 32) as usize % 4];
    drawn % 16 >= out_of_16
}

/// Returns a number from 0 to `most`; `most` is more frequent than the numbers between.
fn spread(drawn: u64, most: u64) -> u64 {
    if drawn.is_multiple_of(4) { most } else { (drawn >> 2) % (most + 1) }
}

/// The output function of SplitMix64.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
