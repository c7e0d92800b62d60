//! The calls of a run, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

/// A call of `attempts`.
#[derive(Clone, Copy)]
pub struct Call {
    /// The timeout of the caller.
    pub limit: Duration,
    /// The three attempts. A fourth attempt would be like the third.
    pub attempts: [Attempt; 3],
    /// Attempt `n` returns this value plus `n`.
    pub value: u32,
}

/// The end of an attempt that is not interrupted.
#[derive(Clone, Copy)]
pub enum Attempt {
    /// The attempt returns its value after this time.
    Value(Duration),
    /// A timeout inside the attempt fires after this time, and the attempt returns it.
    Fails(Duration),
}

use Attempt::{Fails, Value};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Vec<Call> {
    let slow = Value(ms(2000));
    let call = |limit, attempts, value| Call { limit: ms(limit), attempts, value };
    match seed {
        0 => vec![
            call(5000, [slow, slow, Value(ms(500))], 0),
            call(1500, [slow, slow, Value(ms(500))], 0),
            call(5000, [slow, slow, slow], 0),
        ],
        1 => vec![
            // The next calls begin a nanosecond before a microsecond ends, so the log shows a pause
            // of a nanosecond between two attempts.
            Call { limit: ms(750) + Duration::from_nanos(999), ..call(0, [slow, slow, slow], 20) },
            call(9250, [Value(ms(1700)), Value(ms(30)), slow], 5),
            call(4750, [slow, Value(ms(1100)), Value(ms(1400))], 7),
            call(3250, [slow, Fails(ms(400)), Value(ms(100))], 9),
            call(1250, [Value(ms(900)), slow, slow], 4_000_000_000),
            call(2250, [slow, slow, Value(ms(900))], 3),
            // The deadline of the caller is that of an attempt.
            call(1000, [slow, slow, slow], 11),
            call(2000, [slow, slow, Value(ms(100))], 12),
            call(3000, [slow, slow, slow], 13),
            call(4250, [Fails(ms(600)), Value(ms(100)), Value(ms(100))], 14),
            call(4250, [slow, slow, Fails(ms(700))], 15),
            // An attempt that takes as long as its timeout.
            call(4250, [slow, slow, Value(ms(1000))], 16),
        ],
        _ => {
            // No two deadlines of a call are equal.
            let attempt = |nth| match (draw(seed, nth, 7), 30 + 100 * draw(seed, nth + 50, 8)) {
                (0..=3, takes) => Value(ms(1000 + takes)),
                (4..=5, takes) => Value(ms(takes)),
                (_, takes) => Fails(ms(takes)),
            };
            let drawn = |nth| Call {
                limit: ms(250 + 500 * draw(seed, nth + 100, 9)),
                attempts: [nth, nth + 1, nth + 2].map(attempt),
                value: draw(seed, nth + 200, 90) as u32,
            };
            (0..8).map(|nth| drawn(nth * 3)).collect()
        }
    }
}
