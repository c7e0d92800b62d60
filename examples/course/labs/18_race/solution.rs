//! A value and a timeout in one turn: the value wins, and is not lost.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{Question, compute};

/// Asks the task `sender`, which answers the question, and waits for `patience` at most.
pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        sleep(patience / 2).await?;
        // The asker is ready from here on, and cannot run before this task leaves the CPU.
        let sent = sender.send(question.answer());
        assert!(sent.is_ok(), "the asker waits");
        compute(&cpu, patience);
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    timeout_after(patience, receiver).await
}
