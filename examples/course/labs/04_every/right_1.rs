//! Yours: a verb.

use std::time::Duration;

use super::kernel::{Time, clock, sleep};

/// Sleeps until a time, or not at all if the time is past.
async fn until(due: Time) {
    let Time(now) = clock().await;
    match due.0.checked_sub(now) {
        Some(wait) if wait > Duration::ZERO => _ = sleep(wait).await,
        _ => println!("the beat is late"),
    }
}

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let mut due = clock().await;
    for nth in 1..=times {
        until(due).await;
        work(nth).await;
        due = due + period;
    }
}
