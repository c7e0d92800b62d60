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
    /// The requests of the honest client.
    pub requests: Vec<&'static str>,
    /// Each request of the honest client has two pieces. Each piece takes this time.
    pub piece: Duration,
    /// The time that an answer takes.
    pub answer: Duration,
}

const REQUESTS: [&str; 6] =
    ["one tea", "one cake", "two rolls", "one soup", "six eggs", "one pear"];

/// The scenario of a seed.
pub fn of(seed: u64) -> Scenario {
    let (limit, every, count, answer) = match seed {
        0 => (10, 1000, 2, 3),
        1 => (16, 700, 4, 8),
        _ => {
            let limit = 8 + draw(seed, 1, 20);
            (limit, 300 + draw(seed, 2, 1500), 2 + draw(seed, 3, 5), limit / 2)
        }
    };
    Scenario {
        limit: Duration::from_secs(limit),
        every: Duration::from_millis(every),
        requests: REQUESTS[..count as usize].to_vec(),
        bytes: (limit * 3000 / every) as usize,
        piece: Duration::from_millis(limit * 300),
        answer: Duration::from_secs(answer),
    }
}
