// says: line 3401: `beat 0` came, and beat 256 was next
// demand: `every` does as many beats as asked, and ends with the last.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let mut due = clock().await;
    let mut nth: u8 = 0;
    for _ in 0..times {
        nth = nth.wrapping_add(1);
        sleep(due.since(clock().await)).await;
        work(nth.into()).await;
        due = due + period;
    }
}
