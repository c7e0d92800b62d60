// says: line #0017: the task `main` sleeps until 10.005000 while the thread works, which is a guess; the work may take longer, so wait for what the thread does last
// demand: No guess.
//! The event or ten seconds, whichever is first.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, race, run_in_thread, sleep, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = run_in_thread(move || work(&theirs));
    let _ = timeout_after(patience, job).await;
    // If the thread hangs, the caller does not.
    race(over.wait(), sleep(Duration::from_secs(10))).await;
    Ok(())
}
