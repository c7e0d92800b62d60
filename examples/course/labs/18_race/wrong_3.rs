// says: line #0021: the value won the race of #0019 and is lost here: the timeout that lost is still in force in its scope, and it ended the next wait there; take the value out of the scope first
// demand: The value with the asker.
//! The asker has the value, and waits for something else inside the timeout.

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
    timeout_after(patience, async {
        let value = receiver.await?;
        sleep(Duration::from_millis(1)).await?;
        Ok(value)
    })
    .await
}
