// says: line 1051: the log ends after 64 beats; expected 300
// demand: `every` does as many beats as asked, and ends with the last.
//! Yours: a verb.

use std::array;
use std::time::Duration;

use super::kernel::{Time, clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let start = clock().await;
    let due: [Time; 64] = array::from_fn(|nth| start + period * nth as u32);
    for (nth, due) in (1..=times).zip(due) {
        let wait = due.0.saturating_sub(clock().await.0);
        if !wait.is_zero() {
            sleep(wait).await;
        }
        work(nth).await;
    }
}
