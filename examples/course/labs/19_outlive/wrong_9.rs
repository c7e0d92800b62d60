// says: line #0015: this is a second job, o2; the work is one job, o1, and another thread does not know when it ends
// demand: One job on a thread.
//! A second job as a clock: it was begun later, so it ends later.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let theirs = UniversalEvent::new();
    let job = run_in_thread(move || work(&theirs));
    let _ = timeout_after(patience, job).await;
    run_in_thread(|| ()).await?;
    Ok(())
}
