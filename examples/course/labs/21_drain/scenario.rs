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
        0 => (500, 1000, 2000, 10, vec![6, 3]),
        // The next order comes a millisecond after the signal.
        1 => (200, 700, 3699, 12, vec![5, 1, 9, 2, 11]),
        _ => {
            let (first, every) = (100 + draw(seed, 1, 900), 300 + draw(seed, 2, 900));
            let count = 1 + draw(seed, 3, 6);
            let takes = (0..count).map(|nth| 1 + draw(seed, 10 + nth, 9));
            (first, every, first + count * every - 1, 10 + draw(seed, 4, 5), takes.collect())
        }
    };
    let ms = Duration::from_millis;
    Scenario {
        first: ms(first),
        every: ms(every),
        sigterm: ms(sigterm),
        drain: Duration::from_secs(drain),
        takes,
    }
}
