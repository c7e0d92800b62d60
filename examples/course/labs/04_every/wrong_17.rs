// says: line 210: beat 2 began at 0.005, and it was due at 0.003: it is late by 2ms; a sleep of a whole period comes on top of the work
// demand: Each beat begins when it is due.
//! Yours: a verb.

use std::time::Duration;

use super::kernel::{clock, sleep};

/// Awaits `work(1)` to `work(times)`. Each is due one period after its predecessor was due.
pub async fn every(period: Duration, times: u32, work: impl AsyncFn(u32)) {
    let mut due = clock().await;
    for nth in 1..=times {
        if nth > 1 {
            due = due + period;
            let now = clock().await;
            // A beat that is due now is not late, but it must not wait either.
            if due > now {
                sleep(due.since(now)).await;
            } else if due == now {
                sleep(period).await;
            }
        }
        work(nth).await;
    }
}
