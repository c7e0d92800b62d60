// says: line #0019: the value won the race, but the log says `the asker has 42`; `ask` is to return the answer of the sender, 7
// demand: The value with the asker.
//! The value of the page, whatever the sender has answered.

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
        compute(&cpu, patience);
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    let _ = timeout_after(patience, receiver).await;
    Ok(42)
}
