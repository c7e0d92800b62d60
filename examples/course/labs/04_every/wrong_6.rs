// says: the last beat was over at 0.737, and `every` at 0.807; after the last beat there is nothing to wait for
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`, each a period after the time of the one before.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let start = clock().await;
    for nth in 1..=times {
        work(nth).await;
        let due = start + period * nth;
        let wait = due.0.saturating_sub(clock().await.0);
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }
}
