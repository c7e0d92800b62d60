// says: line #0011: the caller gives up after 5ms; its patience is 12.001ms
// demand: The caller gives up in time.
//! The patience of the page in place of that which the caller was given.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, timeout_after};

use super::given::work;

pub async fn caller(_patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = run_in_thread(move || work(&theirs));
    let _ = timeout_after(Duration::from_millis(5), job).await;
    over.wait().await?;
    Ok(())
}
