// says: line #0294: the timer of `ticker` was due at 0.313000 and fired at 0.320000, because `pump` did 2 items in its run of #0287 without yielding
// demand: Each timer of `ticker` fires at most 5 ms late.
//! Yours: the task `pump`.

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
        // A timer may be 5 ms late; but the next item begins before that.
        let now = clock().await;
        if now.since(since) >= 5 * MS {
            yield_now().await?;
            since = now;
        }
    }
}
