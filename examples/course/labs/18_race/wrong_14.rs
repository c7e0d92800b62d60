// says: line #0015: the asker runs at 60.000000, before its deadline 3153603037.463077, and its wait is over, so the timeout had no part in it; after `send`, the sender must hold the CPU until the deadline has passed
// demand: A race that the value wins.
//! The sender computes for long enough, whatever the patience of an asker is.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, spawn, timeout_after};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        let _ = sender.send(question.answer());
        compute(&cpu, Duration::from_secs(60));
    };
    spawn("sender", answer).detached().await;
    timeout_after(patience, receiver).await
}
