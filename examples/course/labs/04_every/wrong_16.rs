// says: line 182: beat 2 began at 630720000.002500, and it was due at 630720000.002501: that is too early
// demand: Each beat begins when it is due.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let start = clock().await.0.as_micros() as u64;
    let period = period.as_micros() as u64;
    for nth in 1..=times {
        if nth > 1 {
            let due = start + period * u64::from(nth - 1);
            let now = clock().await.0.as_micros() as u64;
            if due > now {
                sleep(Duration::from_micros(due - now)).await;
            }
        }
        work(nth).await;
    }
}
