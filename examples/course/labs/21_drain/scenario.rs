//! The orders of this lab, drawn from a seed. Seed 0 is the scenario of the page.

use std::time::Duration;

use crate::draw::draw;

/// One scenario.
#[allow(dead_code, reason = "the program or its check uses the rest")]
pub struct Scenario {
    /// The time of the first order.
    pub first: Duration,
    /// The time between two orders.
    pub every: Duration,
    /// The time of the SIGTERM.
    pub sigterm: Duration,
    /// The longest time for which the shutdown waits for holds.
    pub drain: Duration,
    /// The time that each order takes, in seconds.
    pub takes: Vec<u64>,
}

/// The scenario of a seed.
pub fn of(seed: u64) -> Scenario {
    let (first, every, sigterm, drain, takes) = match seed {
        0 => (500_000, 1_000_000, 2_000_000, 10, vec![6, 3]),
        // In the others the next order comes a microsecond after the signal. Here it is the first.
        1 => (1_600_000, 700_000, 1_599_999, 12, vec![]),
        _ => {
            let (first, every) = (100 + draw(seed, 1, 900), 10 + draw(seed, 2, 10));
            let count = 300 + draw(seed, 3, 100);
            let takes = (0..count).map(|nth| 1 + draw(seed, 10 + nth, 9)).collect();
            let sigterm = 1000 * (first + count * every) - 1;
            (1000 * first, 1000 * every, sigterm, 10 + draw(seed, 4, 5), takes)
        }
    };
    let micros = Duration::from_micros;
    Scenario {
        first: micros(first),
        every: micros(every),
        sigterm: micros(sigterm),
        drain: Duration::from_secs(drain),
        takes,
    }
}
