//! The few longest of many.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use kernel::trace::Seq;

/// The longest durations of all that were added, with a note for each. If two are equal, the
/// earlier one is first.
#[derive(Debug)]
pub struct Longest<T> {
    most: usize,
    rows: BTreeMap<(Reverse<Duration>, Seq), T>,
}

impl<T> Longest<T> {
    /// So many at most.
    pub fn new(most: usize) -> Longest<T> {
        Longest { most, rows: BTreeMap::new() }
    }

    /// Adds a duration that the line with that number ends or begins.
    pub fn add(&mut self, span: Duration, seq: Seq, row: impl FnOnce() -> T) {
        let shortest = self.rows.last_key_value().map(|((span, _), _)| span.0);
        if self.rows.len() < self.most || shortest.is_some_and(|shortest| span > shortest) {
            self.rows.insert((Reverse(span), seq), row());
        }
        if self.rows.len() > self.most {
            self.rows.pop_last();
        }
    }

    /// The longest first.
    pub fn rows(&self) -> impl Iterator<Item = (Duration, &T)> {
        self.rows.iter().map(|((span, _), row)| (span.0, row))
    }
}
