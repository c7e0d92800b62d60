//! The beats of a run, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

/// A drummer. Each has a kernel.
pub struct Scenario {
    /// The time at which `every` begins.
    pub start: Duration,
    pub period: Duration,
    /// The duration of each beat.
    pub work: Vec<Duration>,
}

/// A day, in microseconds.
const DAY: u64 = 86_400_000_000;

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Vec<Scenario> {
    let us = Duration::from_micros;
    let drummers = match seed {
        0 => vec![(
            7_000,
            100_000,
            vec![30_000, 30_000, 250_000, 30_000, 30_000, 30_000, 30_000, 30_000],
        )],
        1 => vec![
            // Two beats are late, and times are between two milliseconds.
            (2_500, 40_300, vec![10_100, 95_000, 5_000, 40_300, 7_000, 60_000]),
            (1_000, 50_000, vec![]),
            (0, 50_000, vec![70_000]),
            // A period of ten days.
            (3_000, 10 * DAY, vec![1_000, 0, 15 * DAY, 1_000, 2_000, 3_000]),
        ],
        _ => {
            let period = 20_000 + draw(seed, 0, 80_000);
            // One beat in four takes up to three periods, and one takes many.
            let work = |nth| match draw(seed, nth + 200, 4) {
                _ if nth == 20 => 12 * period + draw(seed, nth, period),
                0 => draw(seed, nth, 3 * period),
                _ => draw(seed, nth, period),
            };
            let count = 70 + draw(seed, 1, 8);
            vec![(draw(seed, 2, 50_000), period, (3..3 + count).map(|nth| 1 + work(nth)).collect())]
        }
    };
    let drummer = |(start, period, work): (u64, u64, Vec<u64>)| Scenario {
        start: us(start),
        period: us(period),
        work: work.into_iter().map(us).collect(),
    };
    let mut drummers: Vec<Scenario> = drummers.into_iter().map(drummer).collect();
    if seed == 1 {
        // Twenty years, and nanoseconds that make a microsecond in the second beat.
        drummers.push(Scenario {
            start: Duration::from_nanos(2_500_999),
            period: us(20 * 365 * DAY) + Duration::from_nanos(1),
            work: vec![us(1_000); 2],
        });
        // A beat ends when the next is due, and another a nanosecond before.
        drummers.push(Scenario {
            start: us(1_000),
            period: us(2_000),
            work: vec![us(2_000), us(2_000) - Duration::from_nanos(1), us(1_000)],
        });
        // Each beat begins a nanosecond before a microsecond ends, so the log shows a sleep that is
        // a nanosecond too long. The third beat is late.
        drummers.push(Scenario {
            start: Duration::from_nanos(999),
            period: us(2_000),
            work: [1_000, 3_000, 500, 500].map(us).to_vec(),
        });
        // More beats than a byte can count.
        drummers.push(Scenario { start: us(0), period: us(1_000), work: vec![us(400); 300] });
    }
    drummers
}
