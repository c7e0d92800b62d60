// says: line 24: beat 2 began at 0.100, before its time, 0.107; the times count from the first beat, which was at 0.007, not from the start of the clock
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{Time, clock, sleep};

/// Awaits `work(1)` to `work(times)`, each a period after the time of the one before.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    for nth in 1..=times {
        let due = Time::ZERO + period * (nth - 1);
        sleep(due.0.saturating_sub(clock().await.0)).await;
        work(nth).await;
    }
}
