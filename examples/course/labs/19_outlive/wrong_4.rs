// says: the log has no `offload` line, so no thread worked for you; a timeout ends any wait of a task, and nothing is left that could outlive it
// demand: One job on a thread.
//! The work runs in the task itself: there is no thread.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, sleep, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let job = async {
        sleep(4 * patience).await?;
        Ok::<_, Error>(work(&over))
    };
    let _ = timeout_after(patience, job).await;
    Ok(())
}
