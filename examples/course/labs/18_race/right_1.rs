//! The sender computes first: the deadline has passed, and the kernel has not looked yet.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::mpsc::{self, Sender};
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, mut receiver) = mpsc::channel(1);
    spawn("sender", reply(cpu, patience, question, sender)).detached().await;
    timeout_after(patience, async { receiver.recv().await }).await
}

/// A sleep past the deadline would lose the value.
async fn reply(
    cpu: SimClock,
    patience: Duration,
    question: Question,
    sender: Sender<u32>,
) -> Result<(), Error> {
    sleep(patience / 4).await?;
    compute(&cpu, patience * 2);
    let sent = sender.send(question.answer()).await;
    assert!(sent.is_ok(), "the asker waits");
    Ok(())
}
