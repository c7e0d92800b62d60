//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let Some(last) = times.checked_sub(1) else { return };
    let (start, mut nth) = (clock().await, 0);
    while nth < last {
        work(nth + 1).await;
        nth += 1;
        // Of a beat that is late, this is a sleep of no time.
        sleep((start + nth * period).0.saturating_sub(clock().await.0)).await;
    }
    work(times).await;
}
