// says: line #0015: this timeout ends the wait for the thread at 0.010000, which is a guess, because the work may take longer; this wait needs no timeout
// demand: No guess.
//! A deadline that looks from time to time.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = run_in_thread(move || work(&theirs));
    let answer = timeout_after(patience, job).await;
    assert!(answer.is_err());
    // Looks from time to time, with a deadline in place of a sleep.
    let deadline = traps::connection_deadline().await;
    let mut span = patience;
    while !over.is_set() {
        _ = deadline.guard(span, over.wait()).await;
        span *= 2;
    }
    Ok(())
}
