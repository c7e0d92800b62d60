// says: your program did not end in 10 s; the last line of its log is `0.037000    3   1 trap     clock = 0.037000`
// demand: One sleep before each beat.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::clock;

/// Awaits `work(1)` to `work(times)`. Each is due one period after the one before was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let start = clock().await;
    for nth in 1..=times {
        while clock().await < start + period * (nth - 1) {
            // Not yet.
        }
        work(nth).await;
    }
}
