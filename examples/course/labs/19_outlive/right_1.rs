//! A helper task waits for the job and gives up; the caller waits for the thread.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, spawn, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    // A sleep here would be a guess.
    let job = async move { timeout_after(patience, run_in_thread(move || work(&theirs))).await };
    let mut waiter = spawn("waiter", job).await;
    let answer = waiter.join().await?;
    assert!(answer.is_err());
    over.wait().await?;
    Ok(())
}
