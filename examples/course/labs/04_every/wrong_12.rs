// says: line 73: `beat 1` is one beat too many; expected 0
// demand: `every` does as many beats as asked, and ends with the last.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let start = clock().await;
    // The first beat is due at once.
    work(1).await;
    for nth in 2..=times {
        let due = start + period * (nth - 1);
        let wait = due.0.saturating_sub(clock().await.0);
        if !wait.is_zero() {
            sleep(wait).await;
        }
        work(nth).await;
    }
}
