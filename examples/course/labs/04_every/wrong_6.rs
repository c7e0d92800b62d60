// says: line 92: the last beat was over at 0.737, and `every` at 0.807; after the last beat there is nothing to wait for
// demand: `every` does as many beats as asked, and ends with the last.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
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
