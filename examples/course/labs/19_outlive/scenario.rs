//! The numbers of this lab, drawn from a seed. Seed 0 is the scenario of the page.

use std::time::Duration;

use crate::draw::draw;

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
        // A century: longer than any guess.
        _ => (2 + draw(seed, 1, 30), 100 * 365 * 24 * 3_600_000 + draw(seed, 2, 500)),
    };
    let ms = Duration::from_millis;
    // No whole number of milliseconds, except on the page.
    let patience = ms(patience) + Duration::from_micros(seed);
    Scenario { patience, takes: patience + ms(more) }
}
