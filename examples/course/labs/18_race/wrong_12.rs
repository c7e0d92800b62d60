// says: line #0013: the deadline 0.003000 passed and no value was there, so the asker got the timeout; the value must be sent before, and the asker must not run in between
// demand: A race that the value wins.
//! Numbers that are right for a patience of some ten milliseconds.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        sleep(Duration::from_millis(10)).await?;
        let _ = sender.send(question.answer());
        compute(&cpu, Duration::from_secs(1));
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    timeout_after(patience, receiver).await
}
