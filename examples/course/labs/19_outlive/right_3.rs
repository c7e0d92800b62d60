//! A race with a sleep in place of a timeout: the loser is dropped, and so the job is abandoned.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, race, run_in_thread, sleep};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    race(run_in_thread(move || work(&theirs)), sleep(patience)).await;
    over.wait().await?;
    Ok(())
}
