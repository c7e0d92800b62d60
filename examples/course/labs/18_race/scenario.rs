//! The numbers of this lab, drawn from a seed. Seed 0 is the scenario of the page.

use std::time::Duration;

use crate::draw::draw;

/// One scenario.
#[allow(dead_code, reason = "the program or its check uses the rest")]
pub struct Scenario {
    /// The asker waits for this duration at most.
    pub patience: Duration,
    /// The answer to the question.
    pub answer: u32,
}

/// A century, in microseconds: longer than any number that a solution would assume.
const CENTURY: u64 = 100 * 365 * 86_400 * 1_000_000;

/// The scenario of a seed.
pub fn of(seed: u64) -> Scenario {
    let (patience, answer) = match seed {
        0 => (20_000, 42),
        1 => (3_000, 7),
        // More than a century, and an odd number of microseconds.
        _ => (CENTURY + 1 + 2 * draw(seed, 1, CENTURY), 100 + draw(seed, 2, 900) as u32),
    };
    Scenario { patience: Duration::from_micros(patience), answer }
}
