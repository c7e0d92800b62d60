// says: line #0022: `caller` returns the error `timed out: deadline 0.005000 passed at 0.005000`; the timeout was to be expected, so return `Ok` once the thread has ended
// demand: The caller outlives the thread.
//! The error of the timeout is returned after the wait.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = run_in_thread(move || work(&theirs));
    let answer = timeout_after(patience, job).await;
    over.wait().await?;
    answer.map(drop)
}
