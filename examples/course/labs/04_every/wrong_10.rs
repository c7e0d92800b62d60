// says: line 22: beat 2 began at 0.042600, and it was due at 0.042800: that is too early
// demand: Each beat begins when it is due.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let start = clock().await;
    for nth in 1..=times {
        let due = start.0.as_millis() + period.as_millis() * u128::from(nth - 1);
        let wait = due.saturating_sub(clock().await.0.as_millis()) as u64;
        if wait > 0 {
            sleep(Duration::from_millis(wait)).await;
        }
        work(nth).await;
    }
}
