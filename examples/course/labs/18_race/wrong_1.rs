// says: line #0018: the asker runs at 0.015000, before its deadline 0.020000, and its wait is over, so the timeout had no part in it; after `send`, the sender must hold the CPU until the deadline has passed
// demand: A race that the value wins.
//! The sender is quick, and leaves the CPU before the deadline.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        sleep(patience / 2).await?;
        let _ = sender.send(question.answer());
        compute(&cpu, patience / 4);
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    timeout_after(patience, receiver).await
}
