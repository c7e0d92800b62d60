// says: line #0018: the value won the race, but the log says `the asker has nothing: the thread has waited long enough`; `ask` is to return the value 42
//! The deadline has passed, so the value is thrown away: but it won.

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{MS, VALUE, compute};

pub async fn ask(cpu: SimClock) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let clock = cpu.clone();
    let answer = async move {
        sleep(10 * MS).await?;
        let _ = sender.send(VALUE);
        compute(&cpu, 30 * MS);
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    let value = timeout_after(20 * MS, receiver).await?;
    if clock.now().as_micros() > 20_000 { Err(Error::TimedOut) } else { Ok(value) }
}
