//! The beats of a run, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

pub struct Scenario {
    /// The time at which `every` begins.
    pub start: Duration,
    pub period: Duration,
    /// The duration of each beat.
    pub work: Vec<Duration>,
}

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Scenario {
    let us = Duration::from_micros;
    let (start, period, work) = match seed {
        0 => {
            (7_000, 100_000, vec![30_000, 30_000, 250_000, 30_000, 30_000, 30_000, 30_000, 30_000])
        }
        // Two beats are late, and times are between two milliseconds.
        1 => (2_500, 40_300, vec![10_100, 95_000, 5_000, 40_300, 7_000, 60_000]),
        _ => {
            let period = 20_000 + draw(seed, 0, 80_000);
            // One beat in four takes up to three periods.
            let work = |nth| match draw(seed, nth + 20, 4) {
                0 => draw(seed, nth, 3 * period),
                _ => draw(seed, nth, period),
            };
            let count = 4 + draw(seed, 1, 8);
            (draw(seed, 2, 50_000), period, (3..3 + count).map(|nth| 1 + work(nth)).collect())
        }
    };
    Scenario { start: us(start), period: us(period), work: work.into_iter().map(us).collect() }
}
