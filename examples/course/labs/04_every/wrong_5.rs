// says: line 59: beat 4 began at 0.507; it was due at 0.307, and beat 3 was over at 0.457, so it begins then and is not put off
// demand: A late beat begins at once, and moves no other beat.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let start = clock().await;
    let mut beat = 0;
    for nth in 1..=times {
        // The next time that is not past.
        while start + period * beat < clock().await {
            beat += 1;
        }
        sleep((start + period * beat).0 - clock().await.0).await;
        work(nth).await;
    }
}
