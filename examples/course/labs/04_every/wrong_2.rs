// says: line 61: beat 5 began at 0.557; it was due at 0.407, and beat 4 was over at 0.487, so it begins then; count from the first beat, not from one that was late
// demand: A late beat begins at once, and moves no other beat.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    for nth in 1..=times {
        let began = clock().await;
        work(nth).await;
        let took = clock().await.0 - began.0;
        sleep(period.saturating_sub(took)).await;
    }
}
