// says: line #0008: this timeout of the asker is 40ms long; its patience is 20ms
// demand: The timeout of the asker.
//! The asker has more patience than it was given.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        sleep(patience).await?;
        let _ = sender.send(question.answer());
        compute(&cpu, patience * 2);
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    timeout_after(patience * 2, receiver).await
}
