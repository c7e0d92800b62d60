//! The jobs of a run, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

/// A job: its duration and its output.
#[derive(Clone, Copy)]
pub struct Job {
    pub takes: Duration,
    pub output: u32,
}

/// The jobs of each call of `all`. Each call has a kernel.
///
/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Vec<Vec<Job>> {
    let job = |(millis, output)| Job { takes: Duration::from_millis(millis), output };
    let calls = match seed {
        0 => vec![vec![(300, 30), (100, 10), (200, 20)]],
        // Two jobs end at the same time, and the longest is in the middle. Then there is no job,
        // and one that takes no time and has a large output.
        1 => vec![vec![(20, 7), (450, 1), (20, 5), (130, 7)], vec![], vec![(0, 4_000_000_000)]],
        // More jobs than a table has places.
        _ => {
            let nth = |nth| (1 + draw(seed, nth, 900), draw(seed, nth + 1000, 100) as u32);
            vec![(1..=300).map(nth).collect()]
        }
    };
    calls.into_iter().map(|jobs| jobs.into_iter().map(job).collect()).collect()
}
