//! Yours: the task `pump`.

use traps::channel::mpsc::Receiver;
use traps::{Error, clock, yield_now};

use super::given::{Bench, MS};

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    let mut since = clock().await;
    loop {
        let item = match items.recv().await {
            Ok(item) => item,
            Err(Error::SendersGone) => return Ok(()),
            Err(error) => return Err(error),
        };
        bench.work(item);
        // It gives way when it has had the CPU for 2 ms.
        let now = clock().await;
        if now.since(since) >= 2 * MS {
            yield_now().await?;
            since = now;
        }
    }
}
