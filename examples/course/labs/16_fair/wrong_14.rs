// says: line #0326: the timer of `ticker` was due at 0.313000 and fired at 0.320000, because `pump` did 3 items in its run of #0321 without yielding
// demand: Each timer of `ticker` fires at most 5 ms late.
//! The last items in one go.

use traps::Error;
use traps::channel::mpsc::Receiver;
use traps::yield_now;

use super::given::Bench;

pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    // fair while there is much to do; the last two items are done in one go
    loop {
        match items.recv().await {
            Ok(item) => bench.work(item),
            Err(Error::SendersGone) => return Ok(()),
            Err(error) => return Err(error),
        }
        if items.len() > 2 {
            yield_now().await?;
        }
    }
}
