// says: line #0019: the value won the race, but the log says `the asker has nothing: the thread has waited long enough`; `ask` is to return the answer of the sender, 42
// demand: The value with the asker.
//! The deadline has passed, so the value is thrown away: but it won.

use std::time::Duration;

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let (clock, until) = (cpu.clone(), cpu.now() + patience);
    let answer = async move {
        sleep(patience / 2).await?;
        let _ = sender.send(question.answer());
        compute(&cpu, patience);
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    let value = timeout_after(patience, receiver).await?;
    if clock.now() > until { Err(Error::TimedOut) } else { Ok(value) }
}
