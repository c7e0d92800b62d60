// says: line 278: beat 3 began at 0.005001; it was due at 0.004, and beat 2 was over at 0.005, so it begins then and is not put off
// demand: A late beat begins at once, and moves no other beat.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// A sleep of no time would not yield.
const SHORTEST: Duration = Duration::from_nanos(1);

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let mut due = clock().await;
    for nth in 1..=times {
        if nth > 1 {
            due = due + period;
            sleep(due.since(clock().await).max(SHORTEST)).await;
        }
        work(nth).await;
    }
}
