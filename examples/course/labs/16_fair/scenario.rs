//! The amount of work, and the times at which the ticker must run, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

pub struct Scenario {
    /// The number of items.
    pub items: u32,
    /// The CPU time that each item needs.
    pub work: Duration,
    /// The time between two ticks.
    pub period: Duration,
    pub ticks: u32,
}

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Scenario {
    let (items, work, period) = match seed {
        0 => (40, 1, 10),
        1 => (50, 4, 11),
        _ => (20 + draw(seed, 1, 40), 2 + draw(seed, 2, 4), 7 + draw(seed, 3, 10)),
    };
    // All ticks are due while there are items left.
    let ticks = items * work / period;
    let ms = Duration::from_millis;
    Scenario { items: items as u32, work: ms(work), period: ms(period), ticks: ticks as u32 }
}
