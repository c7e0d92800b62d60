// says: line 13: beat 1 began at 0.007; the first beat is due at once, at 0.002500
// demand: Each beat begins when it is due.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// When the beats of the page begin, in milliseconds.
const BEATS: [u64; 8] = [7, 107, 207, 457, 487, 517, 607, 707];

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(_period: Duration, _times: u32, work: impl AsyncFn(u32)) {
    for (nth, beat) in (1..).zip(BEATS) {
        let wait = Duration::from_millis(beat).saturating_sub(clock().await.0);
        if !wait.is_zero() {
            sleep(wait).await;
        }
        work(nth).await;
    }
}
