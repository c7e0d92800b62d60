//! A limiter as the kernel keeps it: plain counts, and a line of job numbers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// How many jobs of one class may have a thread at one time.
#[derive(Debug, Default)]
pub struct LimiterCore {
    /// Its name in the log.
    pub name: &'static str,
    /// How many jobs may have a token at one time.
    pub tokens: usize,
    /// How many have.
    pub in_use: Cell<usize>,
    /// The most that had.
    pub peak: Cell<usize>,
    /// The jobs that wait: their numbers, which are in the order of their coming.
    pub line: RefCell<BTreeSet<u64>>,
    /// The kernel whose jobs these are; 0 for none.
    pub home: Cell<u32>,
}

impl LimiterCore {
    /// Whether it has no job at all.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.in_use.get() == 0 && self.line.borrow().is_empty()
    }

    /// Forgets all jobs: their kernel is gone.
    pub fn reset(&self) {
        self.in_use.set(0);
        self.line.borrow_mut().clear();
        self.home.set(0);
    }
}
