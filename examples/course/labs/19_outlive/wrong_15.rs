// says: line #0011: the caller gives up after 12ms; its patience is 12.001ms
// demand: The caller gives up in time.
//! The patience in whole milliseconds.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = run_in_thread(move || work(&theirs));
    let _ = timeout_after(Duration::from_millis(patience.as_millis() as u64), job).await;
    over.wait().await?;
    Ok(())
}
