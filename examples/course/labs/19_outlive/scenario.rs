//! The numbers of this lab, drawn from a seed. Seed 0 is the scenario of the page.

use std::time::Duration;

/// One scenario.
#[allow(dead_code, reason = "the program or its check uses the rest")]
pub struct Scenario {
    /// The caller waits for this duration.
    pub patience: Duration,
    /// The time that the first job takes.
    pub takes: Duration,
}

/// The scenario of a seed.
pub fn of(seed: u64) -> Scenario {
    let (patience, more) = match seed {
        0 => (5, 15),
        1 => (12, 288),
        _ => (2 + drawn(seed, 1, 30), 5 + drawn(seed, 2, 500)),
    };
    let ms = Duration::from_millis;
    Scenario { patience: ms(patience), takes: ms(patience + more) }
}

/// Draws a number below `below`.
fn drawn(seed: u64, nth: u64, below: u64) -> u64 {
    let mixed = (seed << 8 | nth).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) % below
}
