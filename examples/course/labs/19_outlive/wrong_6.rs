// says: line #0014: the task `main` sleeps until 1.005000 while the thread works, which is a guess; the work may take longer, so wait for what the thread does last
// demand: No guess.
//! A sleep that happens to be longer than the rest of the work.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, sleep, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let theirs = UniversalEvent::new();
    let job = run_in_thread(move || work(&theirs));
    let _ = timeout_after(patience, job).await;
    sleep(Duration::from_secs(1)).await?;
    Ok(())
}
