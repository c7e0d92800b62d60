// says: line #0018: item 1 was done by task 5 `pump`; the items are the work of task 4 `pump`, and tasks of their own would all run in the same turn, before the kernel looks at its timers
// demand: `pump` does all items itself.
//! Yours: the task `pump`.

use std::rc::Rc;

use traps::channel::mpsc::Receiver;
use traps::{Error, spawn};

use super::given::Bench;

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    let bench = Rc::new(bench);
    loop {
        match items.recv().await {
            Ok(item) => {
                let bench = Rc::clone(&bench);
                // A task for each item, one after the other.
                spawn("pump", async move { bench.work(item) }).await.join().await?;
            }
            Err(Error::SendersGone) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
