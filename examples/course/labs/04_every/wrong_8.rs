// says: line 3518: `every` slept 700 times before beat 2; one sleep is enough, because it is known when the beat is due
// demand: One sleep before each beat.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let start = clock().await;
    for nth in 1..=times {
        let due = start + period * (nth - 1);
        while clock().await < due {
            sleep(Duration::from_micros(100)).await;
        }
        work(nth).await;
    }
}
