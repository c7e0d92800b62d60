// says: line #0016: `pump` blocks on `waker`, and the CPU is idle until it is woken, with items left; yield, without waiting for a time
// demand: The CPU is not idle while there are items.
//! Yours: the task `pump`.

use std::future::pending;

use traps::channel::mpsc::Receiver;
use traps::{Error, timeout_after};

use super::given::{Bench, MS};

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    loop {
        match items.recv().await {
            Ok(item) => bench.work(item),
            Err(Error::SendersGone) => return Ok(()),
            Err(error) => return Err(error),
        }
        // Lets the others run for a while.
        _ = timeout_after(MS / 2, pending::<Result<(), Error>>()).await;
    }
}
