//! A thread that outlives its caller, and a program that outlives the thread.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, timeout_after};

use super::given::work;

/// Waits for the work for `patience`, then gives up. Returns once the thread has ended.
pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = run_in_thread(move || work(&theirs));
    // The error is the point of this lab: the work takes longer.
    let answer = timeout_after(patience, job).await;
    assert!(answer.is_err());
    // Not a sleep: only the thread knows how long it takes.
    over.wait().await?;
    Ok(())
}
