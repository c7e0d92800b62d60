// says: line #0469: item 99 was done, the second since `pump` was cancelled in #0464; the next trap that parks returns the cancellation as an error, and this error is to end the task
// demand: A cancelled `pump` ends.
//! Yours: the task `pump`.

use traps::channel::mpsc::Receiver;
use traps::{Error, yield_now};

use super::given::Bench;

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    while let Ok(item) = items.recv().await {
        bench.work(item);
        // A yield has no result.
        _ = yield_now().await;
    }
    Ok(())
}
