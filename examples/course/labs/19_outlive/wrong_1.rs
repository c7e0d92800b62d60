// says: line #0012: the job o1 is done and its caller still waits; the timeout of #0006 ends at 0.050000, and the job at 0.020000
// demand: The caller gives up in time.
//! The deadline is later than the end of the work.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = run_in_thread(move || work(&theirs));
    let _ = timeout_after(10 * patience, job).await;
    over.wait().await?;
    Ok(())
}
