//! The clients of this lab, drawn from a seed. Seed 0 is the scenario of the page.

use std::time::Duration;

use crate::draw::draw;

/// One scenario.
#[allow(dead_code, reason = "the program or its check uses the rest")]
pub struct Scenario {
    /// The limit of a request.
    pub limit: Duration,
    /// The time between two bytes of the loris.
    pub every: Duration,
    /// The number of bytes of the loris, which take three times the limit.
    pub bytes: usize,
    /// The request that the loris and the silent client make before all else, at once.
    pub first: Option<&'static str>,
    /// The requests of the honest client.
    pub requests: Vec<&'static str>,
    /// Each request of the honest client has two pieces. Each piece takes this time.
    pub piece: Duration,
    /// The time that an answer takes.
    pub answer: Duration,
}

const REQUESTS: [&str; 6] = ["one tea", "one cake", "two rolls", LONG, "six eggs", "one pear"];

const LONG: &str =
    "one breakfast: two rolls, butter, honey, an egg, cheese, ham and a pot of coffee";

/// The scenario of a seed.
pub fn of(seed: u64) -> Scenario {
    let (limit, every, count, answer) = match seed {
        0 => (10_000_000, 1000, 2, 3),
        // An answer takes a year: longer than any limit that a solution could set for it.
        1 => (16_300_003, 700, 4, 365 * 86_400),
        _ => {
            let limit = 8_000_000 + draw(seed, 1, 100_000_000);
            (limit, 300 + draw(seed, 2, 1500), 40 + draw(seed, 3, 10), limit / 500_000)
        }
    };
    // Scenario 1 has a request of 8,000 bytes. One only, because the log shows it.
    let mut requests: Vec<&'static str> =
        REQUESTS.into_iter().cycle().take(count as usize).collect();
    if seed == 1 {
        requests[3] = Box::leak(LONG.repeat(100).into_boxed_str());
    }
    Scenario {
        limit: Duration::from_micros(limit),
        every: Duration::from_millis(every),
        first: (seed > 0).then_some("one cup"),
        requests,
        bytes: (limit * 3 / 1000 / every) as usize,
        piece: Duration::from_micros(limit * 3 / 10),
        answer: Duration::from_secs(answer),
    }
}
