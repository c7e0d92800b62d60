// says: line 57: beat 5 began at 0.557; its time was 0.407, and it can begin at 0.487: count from the first beat, not from one that was late itself
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`, each a period after the time of the one before.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    for nth in 1..=times {
        let began = clock().await;
        work(nth).await;
        let took = clock().await.0 - began.0;
        sleep(period.saturating_sub(took)).await;
    }
}
