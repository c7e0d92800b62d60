// says: line #0014: the error of the timeout left `caller` at once, and the thread of o1, abandoned in #0011, still works; the error is expected here, and the wait for the thread comes after it
// demand: The caller outlives the thread.
//! The error of the timeout is returned at once, before the wait for the thread.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = run_in_thread(move || work(&theirs));
    timeout_after(patience, job).await?;
    over.wait().await?;
    Ok(())
}
