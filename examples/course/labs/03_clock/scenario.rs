//! The waits of a run, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

pub struct Scenario {
    /// The two sleeps of each task that naps.
    pub naps: Vec<[Duration; 2]>,
    /// The number of times that the other task yields.
    #[allow(dead_code, reason = "check does not count it")]
    pub yields: u32,
    /// The calls of `wait` after the run, on another clock.
    pub by_hand: Vec<Option<Duration>>,
}

/// A day, in milliseconds.
const DAY: u64 = 86_400_000;

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Scenario {
    let ms = Duration::from_millis;
    match seed {
        0 => Scenario {
            naps: vec![[ms(100), ms(200)], [ms(50), ms(100)]],
            yields: 1,
            by_hand: vec![Some(ms(300)), Some(ms(200)), None, Some(ms(3_600_000))],
        },
        // One time is between two milliseconds, and others are a day, two months, and twenty years
        // and a nanosecond.
        1 => Scenario {
            naps: vec![[Duration::from_micros(20_700), ms(40)], [ms(90), ms(5)], [ms(20), ms(1)]],
            yields: 3,
            by_hand: [
                None,
                Some(DAY),
                Some(1),
                None,
                Some(DAY + 1),
                Some(60 * DAY),
                Some(60 * DAY),
            ]
            .into_iter()
            .chain([None, Some(20 * 365 * DAY), Some(0), None])
            .map(|at| at.map(ms))
            .chain([Some(ms(20 * 365 * DAY) + Duration::from_nanos(1)), Some(ms(20 * 365 * DAY))])
            .collect(),
        },
        _ => {
            let us = |nth, bound| Duration::from_micros(1 + draw(seed, nth, bound));
            Scenario {
                naps: (0..3).map(|nth| [us(nth, 300_000), us(nth + 10, 300_000)]).collect(),
                yields: draw(seed, 20, 4) as u32,
                by_hand: (30..36)
                    .map(|nth| (draw(seed, nth, 4) > 0).then(|| us(nth, 10_000_000_000)))
                    .chain([None])
                    .collect(),
            }
        }
    }
}
