// says: line 27: `every` read the clock 7 times before beat 2; it is known when the beat is due, so once or twice is enough
// demand: One sleep before each beat.
//! Yours: a beat that does not drift.

use std::time::Duration;

use super::kernel::{clock, sleep};

pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let mut due = clock().await;
    for nth in 1..=times {
        let mut now = clock().await;
        if nth > 1 {
            for _ in 0..5 {
                now = clock().await;
            }
        }
        if due > now {
            sleep(due.0 - now.0).await;
        }
        work(nth).await;
        due = due + period;
    }
}
