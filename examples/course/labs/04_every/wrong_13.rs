// says: line 113: beat 2 began at 711.576504, and it was due at 864000.003: that is too early
// demand: Each beat begins when it is due.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let start = clock().await;
    for nth in 1..=times {
        let micros = period.as_micros() as u32 * (nth - 1);
        let due = start + Duration::from_micros(u64::from(micros));
        let wait = due.0.saturating_sub(clock().await.0);
        if !wait.is_zero() {
            sleep(wait).await;
        }
        work(nth).await;
    }
}
