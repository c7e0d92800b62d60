// says: line #0013: the deadline 0.020000 passed and no value was there, so the asker got the timeout; the value must be sent before, and the asker must not run in between
//! The sender waits past the deadline instead of computing past it.

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{MS, VALUE};

pub async fn ask(_cpu: SimClock) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        sleep(30 * MS).await?;
        let _ = sender.send(VALUE);
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    timeout_after(20 * MS, receiver).await
}
