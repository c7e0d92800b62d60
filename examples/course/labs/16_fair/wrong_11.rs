// says: line #0213: the timer of `ticker` was due at 0.313000 and fired at 0.320000, because `pump` did 2 items in its run of #0208 without yielding
// demand: Each timer of `ticker` fires at most 5 ms late.
//! Yours: the task `pump`.

use traps::channel::mpsc::Receiver;
use traps::{Error, yield_now};

use super::given::Bench;

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    let mut is_second = false;
    loop {
        match items.recv().await {
            Ok(item) => bench.work(item),
            Err(Error::SendersGone) => return Ok(()),
            Err(error) => return Err(error),
        }
        // Half as many turns.
        if is_second {
            yield_now().await?;
        }
        is_second = !is_second;
    }
}
