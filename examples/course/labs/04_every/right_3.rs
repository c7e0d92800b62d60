//! Yours: a verb that calls itself.

use std::time::Duration;

use super::kernel::{Time, clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    beats(clock().await, period, 1, times, &work).await;
}

/// The beats from `nth` on, which is due at `due`.
async fn beats(due: Time, period: Duration, nth: u32, times: u32, work: &impl AsyncFn(u32)) {
    if nth > times {
        return;
    }
    let wait = due.since(clock().await);
    if wait > Duration::ZERO {
        sleep(wait).await;
    }
    work(nth).await;
    Box::pin(beats(due + period, period, nth + 1, times, work)).await;
}
