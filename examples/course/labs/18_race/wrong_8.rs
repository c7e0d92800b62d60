// says: line #0016: the asker begins to wait here at 0.020000; it is to wait once, from its beginning and for 20ms at most
// demand: The timeout of the asker.
//! The first wait times out, and the race is at the second.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, ignore_after, sleep, spawn, timeout_after};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, mut receiver) = oneshot::channel();
    let answer = async move {
        sleep(patience * 3 / 2).await?;
        let _ = sender.send(question.answer());
        compute(&cpu, patience);
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    let first = ignore_after(patience, &mut receiver).await?;
    assert!(first.is_none(), "the value comes later");
    timeout_after(patience, receiver).await
}
