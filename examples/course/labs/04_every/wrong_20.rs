// says: line 104: `every` sleeps after the last beat; there is nothing to wait for then
// demand: One sleep before each beat.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let mut due = clock().await;
    for nth in 1..=times {
        work(nth).await;
        if nth < times {
            due = due + period;
        }
        sleep(due.since(clock().await)).await;
    }
}
