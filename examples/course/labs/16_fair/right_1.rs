//! Yours: the task `pump`.

use std::time::Duration;

use traps::channel::mpsc::Receiver;
use traps::{Error, sleep};

use super::given::Bench;

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    while let Some(item) = next(&mut items).await? {
        // A sleep of zero is one turn, in which no time passes.
        sleep(Duration::ZERO).await?;
        bench.work(item);
    }
    Ok(())
}

async fn next(items: &mut Receiver<u32>) -> Result<Option<u32>, Error> {
    match items.recv().await {
        Err(Error::SendersGone) => Ok(None),
        item => item.map(Some),
    }
}
