// says: line 66: `beat 7` is one beat too many; expected 6
// demand: `every` does as many beats as asked, and ends with the last.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let start = clock().await;
    let _ = times;
    for nth in 1..=8 {
        let due = start + period * (nth - 1);
        let wait = due.0.saturating_sub(clock().await.0);
        if !wait.is_zero() {
            sleep(wait).await;
        }
        work(nth).await;
    }
}
