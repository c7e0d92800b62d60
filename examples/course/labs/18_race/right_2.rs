//! The value is the result of the sender, and the asker joins the sender.

use std::time::Duration;

use kernel::SimClock;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let reply = async move {
        sleep(patience / 2).await?;
        let answer = question.answer();
        compute(&cpu, patience);
        Ok::<_, Error>(answer)
    };
    let mut sender = spawn("sender", reply).await;
    timeout_after(patience, async { sender.join().await? }).await
}
