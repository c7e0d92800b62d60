// says: line #0017: the asker runs at 0.015000 with its value, and its deadline is 0.020000, so the timeout had no part in it; after `send`, the sender must hold the CPU until the deadline has passed
//! The sender is quick, and gives way before the deadline.

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{MS, VALUE, compute};

pub async fn ask(cpu: SimClock) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        sleep(10 * MS).await?;
        let _ = sender.send(VALUE);
        compute(&cpu, 5 * MS);
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    timeout_after(20 * MS, receiver).await
}
