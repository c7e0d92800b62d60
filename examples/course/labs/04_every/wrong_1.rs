// says: line 19: beat 2 began at 0.137, and its time was 0.107: it is late by 30 ms, and each beat will be later; a sleep of a whole period comes on top of the work
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`, each a period after the time of the one before.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    clock().await;
    for nth in 1..=times {
        work(nth).await;
        sleep(period).await;
    }
}
