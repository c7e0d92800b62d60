//! The jobs of a run, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

/// A job: its duration and its output.
#[derive(Clone, Copy)]
pub struct Job {
    pub takes: Duration,
    pub output: u32,
}

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Vec<Job> {
    let job = |(millis, output)| Job { takes: Duration::from_millis(millis), output };
    match seed {
        0 => vec![(300, 30), (100, 10), (200, 20)].into_iter().map(job).collect(),
        // Two jobs end at the same time, and the longest is in the middle.
        1 => vec![(20, 7), (450, 1), (20, 5), (130, 7)].into_iter().map(job).collect(),
        _ => {
            let nth = |nth| (1 + draw(seed, nth, 900), draw(seed, nth + 10, 100) as u32);
            (1..4 + draw(seed, 0, 4)).map(nth).map(job).collect()
        }
    }
}
