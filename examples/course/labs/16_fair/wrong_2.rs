// says: line #0015: `pump` sleeps while it has items, so the CPU is idle; give way without waiting for a time
//! Yours: the task `pump`.

use traps::channel::mpsc::Receiver;
use traps::{Error, sleep};

use super::given::{Bench, MS};

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    loop {
        match items.recv().await {
            Ok(item) => bench.work(item),
            Err(Error::SendersGone) => return Ok(()),
            Err(error) => return Err(error),
        }
        sleep(MS).await?;
    }
}
