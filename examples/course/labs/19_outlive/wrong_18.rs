// says: line #0014: this timeout has no limit, so it never ends the wait for the thread; this wait needs no timeout
// demand: No guess.
//! A timeout without a limit.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    _ = timeout_after(patience, run_in_thread(move || work(&theirs))).await;
    timeout_after(None, over.wait()).await?;
    Ok(())
}
