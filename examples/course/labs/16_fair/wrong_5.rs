// says: line #0141: the timer of `ticker` was due at 0.313000 and fired at 0.320000, because `pump` did 5 items in its run of #0133 without yielding
// demand: Each timer of `ticker` fires at most 5 ms late.
//! Yours: the task `pump`.

use traps::channel::mpsc::Receiver;
use traps::{Error, yield_now};

use super::given::Bench;

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    let mut done = 0;
    loop {
        match items.recv().await {
            Ok(item) => bench.work(item),
            Err(Error::SendersGone) => return Ok(()),
            Err(error) => return Err(error),
        }
        // Five items are five milliseconds.
        done += 1;
        if done % 5 == 0 {
            yield_now().await?;
        }
    }
}
