// says: line 20: beat 2 began at 0.137, and it was due at 0.107: it is late by 30ms; a sleep of a whole period comes on top of the work
// demand: Each beat begins when it is due.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    clock().await;
    for nth in 1..=times {
        work(nth).await;
        sleep(period).await;
    }
}
