// says: `work` was called 0 times; the job is to call it once, and the work sets the event at its end
// demand: One job on a thread.
//! The thread sets the event, and does not do the work.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, timeout_after};

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = run_in_thread(move || theirs.set());
    let _ = timeout_after(patience, job).await;
    over.wait().await?;
    Ok(())
}
