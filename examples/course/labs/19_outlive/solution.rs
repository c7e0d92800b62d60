//! A thread that outlives its caller, and a program that outlives the thread.

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, timeout_after};

use super::given::{MS, work};

/// Waits 5 ms for the work and gives up; returns when the thread has ended.
pub async fn caller() -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = run_in_thread(move || work(&theirs));
    // The error is what this lab is about: the work takes longer.
    let answer = timeout_after(5 * MS, job).await;
    assert!(answer.is_err());
    // Not a sleep: nobody outside of the thread knows how long it takes.
    over.wait().await?;
    Ok(())
}
