//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let _start = clock().await;
    for nth in 1..=times {
        work(nth).await;
        sleep(period).await;
        todo!("a wait until the time of the next beat, in place of this sleep")
    }
}
