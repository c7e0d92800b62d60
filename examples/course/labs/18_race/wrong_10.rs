// says: line #0022: the asker answers its own question here; the task `sender` is to call `question.answer()` and to send the result
// demand: The answer of the sender.
//! The sender sends nothing but a signal, and the asker answers its own question.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let signal = async move {
        sleep(patience / 2).await?;
        let _ = sender.send(());
        compute(&cpu, patience);
        Ok::<_, Error>(())
    };
    spawn("sender", signal).detached().await;
    timeout_after(patience, receiver).await?;
    Ok(question.answer())
}
