// says: line #0546: item 118 was done, the second since `pump` was cancelled in #0540; the next trap that parks returns the cancellation as an error, and this error is to end the task
// demand: A cancelled `pump` ends.
//! It yields when it has had the CPU for three milliseconds.

use traps::channel::mpsc::Receiver;
use traps::{Error, clock, yield_now};

use super::given::{Bench, MS};

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    let mut since = clock().await;
    loop {
        match items.recv().await {
            Ok(item) => bench.work(item),
            Err(Error::SendersGone) => return Ok(()),
            Err(error) => return Err(error),
        }
        if clock().await - since >= 3 * MS {
            yield_now().await?;
            since = clock().await;
        }
    }
}
