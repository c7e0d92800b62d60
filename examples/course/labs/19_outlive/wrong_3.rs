// says: line #0015: the job o1 is done and its caller still waits: the shield of #0007 held the timeout back; no interrupt can stop the thread, so it needs no shield
// demand: The caller gives up in time.
//! A shield around the job: it is not abandoned, because its caller is not interrupted.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, shield, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = shield(run_in_thread(move || work(&theirs)));
    let _ = timeout_after(patience, job).await;
    over.wait().await?;
    Ok(())
}
