// says: line #0020: the value won the race of #0018 and is lost here: the timeout that lost is still in force in its scope, and it ended the next wait there; take the value out of the scope first
//! The asker has the value, and waits for something else inside the timeout.

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{MS, VALUE, compute};

pub async fn ask(cpu: SimClock) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        sleep(10 * MS).await?;
        let _ = sender.send(VALUE);
        compute(&cpu, 30 * MS);
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    timeout_after(20 * MS, async {
        let value = receiver.await?;
        sleep(MS).await?;
        Ok(value)
    })
    .await
}
