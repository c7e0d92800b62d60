// says: line 18: beat 2 began at 0.037, and it was due at 0.107: that is too early
// demand: Each beat begins when it is due.
//! Yours: a verb.

use std::time::{Duration, Instant};

use super::kernel::clock;

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let start = clock().await;
    for nth in 1..=times {
        let due = start + period * (nth - 1);
        let wait = due.0.saturating_sub(clock().await.0);
        // The time passes while the task waits, but on another clock.
        let began = Instant::now();
        while began.elapsed() < wait {
            std::hint::spin_loop();
        }
        work(nth).await;
    }
}
