// says: line #0022: the job o1 is done, and `job` still waits for it, because this task has no timeout; wait for the job itself in `timeout_after`
// demand: The caller gives up in time.
//! The timeout is around the wait for a task, which waits for the thread as long as it takes.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, spawn, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let mut job = spawn("job", run_in_thread(move || work(&theirs))).await;
    _ = timeout_after(patience, job.join()).await;
    over.wait().await?;
    Ok(())
}
