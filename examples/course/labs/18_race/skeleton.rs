//! A value and a timeout in one turn: the value must win, and must not be lost.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, spawn, timeout_after};

use super::given::Question;

/// Asks the task `sender`, which answers the question, and waits for `patience` at most.
pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        // The solution uses these three.
        let _ = (cpu, question, sender);
        todo!("the work of the task `sender`")
    };
    spawn("sender", answer).detached().await;
    timeout_after(patience, receiver).await
}
