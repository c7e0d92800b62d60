// says: line #0019: the asker runs at 1576805118.731539, before its deadline 3153603037.463077, and its wait is over, so the timeout had no part in it; after `send`, the sender must hold the CPU until the deadline has passed
// demand: A race that the value wins.
//! The sender computes for an hour, which is not enough for each patience.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after, yield_now};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        sleep(patience / 2).await?;
        let _ = sender.send(question.answer());
        compute(&cpu, Duration::from_secs(3600));
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    let _ = yield_now;
    timeout_after(patience, receiver).await
}
