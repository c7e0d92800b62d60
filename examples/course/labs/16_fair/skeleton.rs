//! Yours: the task `pump`.

use traps::Error;
use traps::channel::mpsc::Receiver;

use super::given::Bench;

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    loop {
        match items.recv().await {
            Ok(item) => bench.work(item),
            Err(Error::SendersGone) => return Ok(()),
            Err(error) => return Err(error),
        }
        todo!("what lets `ticker` run between two items")
    }
}
