// says: line #0015: the asker waits here for the second time, for `oneshot`, and in #0008 for `yield`; it is to wait once, from its beginning and for 20ms at most
// demand: The timeout of the asker.
//! The asker lets the sender begin first, and waits after that.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, spawn, timeout_after, yield_now};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        yield_now().await?;
        compute(&cpu, patience);
        _ = sender.send(question.answer());
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    yield_now().await?;
    timeout_after(patience, receiver).await
}
