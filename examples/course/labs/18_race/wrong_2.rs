// says: line #0013: the deadline 0.020000 passed and no value was there, so the asker got the timeout; the value must be sent before, and the asker must not run in between
// demand: A race that the value wins.
//! The sender waits past the deadline instead of computing past it.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::Question;

pub async fn ask(_cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        sleep(patience * 3 / 2).await?;
        let _ = sender.send(question.answer());
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    timeout_after(patience, receiver).await
}
