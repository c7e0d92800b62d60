// says: line #0018: `caller` has returned at 0.015000, and the thread of o1, abandoned in #0011, still works: no `orphan o1` is before this line; wait for what the thread does last
// demand: The caller outlives the thread.
//! A sleep that is shorter than the rest of the work.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, sleep, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let theirs = UniversalEvent::new();
    let job = run_in_thread(move || work(&theirs));
    let _ = timeout_after(patience, job).await;
    sleep(2 * patience).await?;
    Ok(())
}
