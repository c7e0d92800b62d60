// says: line 214: beat 3 began at 0.004999, and it was due at 0.005: that is too early
// demand: Each beat begins when it is due.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let mut due = clock().await;
    for nth in 1..=times {
        if nth > 1 {
            due = due + period;
            let wait = due.since(clock().await);
            if wait >= Duration::from_micros(1) {
                sleep(wait).await;
            }
        }
        work(nth).await;
    }
}
