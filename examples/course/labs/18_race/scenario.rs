//! The numbers of this lab, drawn from a seed. Seed 0 is the scenario of the page.

use std::time::Duration;

/// One scenario.
#[allow(dead_code, reason = "the program or its check uses the rest")]
pub struct Scenario {
    /// The asker waits for this duration at most.
    pub patience: Duration,
    /// The answer to the question.
    pub answer: u32,
}

/// The scenario of a seed.
pub fn of(seed: u64) -> Scenario {
    let (patience, answer) = match seed {
        0 => (20, 42),
        1 => (70, 7),
        _ => (30 + drawn(seed, 1, 200), 100 + drawn(seed, 2, 900) as u32),
    };
    Scenario { patience: Duration::from_millis(patience), answer }
}

/// Draws a number below `below`.
fn drawn(seed: u64, nth: u64, below: u64) -> u64 {
    let mixed = (seed << 8 | nth).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) % below
}
