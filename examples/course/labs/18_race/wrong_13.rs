// says: line #0018: the asker runs at 0.002000, before its deadline 0.003000, and its wait is over, so the timeout had no part in it; after `send`, the sender must hold the CPU until the deadline has passed
// demand: A race that the value wins.
//! Two halves in whole milliseconds, which can be less than the whole.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let half = Duration::from_millis(patience.as_millis() as u64 / 2);
    let answer = async move {
        sleep(half).await?;
        let _ = sender.send(question.answer());
        compute(&cpu, half);
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    timeout_after(patience, receiver).await
}
