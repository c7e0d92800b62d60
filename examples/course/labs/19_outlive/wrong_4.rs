// says: the log has no `offload` line, so no thread worked for you; a timeout ends whatever waits in a task, and nothing is left that could outlive it
//! The work runs in the task itself: there is no thread.

use traps::universal::UniversalEvent;
use traps::{Error, sleep, timeout_after};

use super::given::{MS, work};

pub async fn caller() -> Result<(), Error> {
    let over = UniversalEvent::new();
    let job = async {
        sleep(20 * MS).await?;
        Ok::<_, Error>(work(&over))
    };
    let _ = timeout_after(5 * MS, job).await;
    Ok(())
}
