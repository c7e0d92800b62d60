//! The amount of work, and the times at which the ticker must run, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

pub struct Scenario {
    /// The number of items.
    pub items: u32,
    /// The CPU time that each item needs.
    pub work: Duration,
    /// The time before each tick. All ticks are due while there are items left.
    pub periods: Vec<Duration>,
    /// Whether main cancels the pump after the last tick.
    pub is_cancelled: bool,
}

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Scenario {
    let (items, work, period) = match seed {
        0 => (40, 1, 10),
        1 => (80, 4, 0),
        _ => {
            // At least 2 ms, so that a pump may yield whenever it has had the CPU for 2 ms.
            let work = 2 + draw(seed, 2, 4);
            ((400 + draw(seed, 1, 80)) / work, work, 7 + draw(seed, 3, 6))
        }
    };
    let ms = Duration::from_millis;
    // Each sleep is longer than the one before, so that no rhythm of the pump suits them all.
    let periods = match seed {
        0 => vec![ms(period); 4],
        // The only tick is due when the last item but one is begun.
        1 => vec![ms(work * (items - 2) + 1)],
        _ => (0..12).map(|nth| ms(period + nth)).collect(),
    };
    Scenario { items: items as u32, work: ms(work), periods, is_cancelled: seed > 1 }
}
