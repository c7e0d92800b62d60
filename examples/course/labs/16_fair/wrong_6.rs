// says: line #0014: item 40 was done, and 1 was next
// demand: The items are done in their order.
//! Yours: the task `pump`.

use traps::channel::mpsc::Receiver;
use traps::{Error, yield_now};

use super::given::Bench;

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    // All of them are there.
    let mut all = Vec::new();
    while let Ok(item) = items.recv().await {
        all.push(item);
    }
    while let Some(item) = all.pop() {
        bench.work(item);
        yield_now().await?;
    }
    Ok(())
}
