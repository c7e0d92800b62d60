// says: line #0666: item 99 was done, the second since `pump` was cancelled in #0658; the next trap that parks returns the cancellation as an error, and this error is to end the task
// demand: A cancelled `pump` ends.
//! The work is shielded, and the result of the yield is not read.

use traps::channel::mpsc::Receiver;
use traps::{Error, shield, yield_now};

use super::given::Bench;

pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    while let Ok(item) = items.recv().await {
        shield(async { bench.work(item) }).await;
        _ = yield_now().await;
    }
    Ok(())
}
