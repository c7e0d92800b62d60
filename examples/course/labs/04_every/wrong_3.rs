// says: line 25: beat 2 began at 0.100, and it was due at 0.107: that is too early; the times count from the first beat, which was at 0.007
// demand: Each beat begins when it is due.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{Time, clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    for nth in 1..=times {
        let due = Time::ZERO + period * (nth - 1);
        sleep(due.0.saturating_sub(clock().await.0)).await;
        work(nth).await;
    }
}
