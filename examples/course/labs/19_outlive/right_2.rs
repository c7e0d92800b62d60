//! The timeout is no error here: `ignore_after` gives `None`.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, ignore_after, run_in_thread, shield};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    if give_up(&over, patience).await?.is_none() {
        // The thread is waited for, even if the caller is cancelled.
        shield(over.wait()).await?;
    }
    Ok(())
}

async fn give_up(over: &UniversalEvent, patience: Duration) -> Result<Option<u32>, Error> {
    let over = over.clone();
    ignore_after(patience, run_in_thread(move || work(&over))).await
}
