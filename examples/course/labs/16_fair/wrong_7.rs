// says: line #0174: `pump` ends, and has done 40 of its 80 items
// demand: `pump` does all items itself.
//! Yours: the task `pump`.

use traps::channel::mpsc::Receiver;
use traps::{Error, yield_now};

use super::given::Bench;

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    for _ in 0..40 {
        match items.recv().await {
            Ok(item) => bench.work(item),
            Err(Error::SendersGone) => break,
            Err(error) => return Err(error),
        }
        yield_now().await?;
    }
    Ok(())
}
