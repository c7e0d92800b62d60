// says: line #0019: the asker waits here for the second time, for `yield`, and in #0009 for `oneshot`; it is to wait once, from its beginning and for 20ms at most
// demand: The timeout of the asker.
//! The asker has the value in time, and waits inside the timeout until the deadline has passed.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after, yield_now};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        sleep(patience / 2).await.ok();
        _ = sender.send(question.answer());
    };
    spawn("sender", answer).detached().await;
    let value = async {
        let value = receiver.await?;
        compute(&cpu, patience);
        yield_now().await.ok();
        Ok::<_, Error>(value)
    };
    timeout_after(patience, value).await
}
