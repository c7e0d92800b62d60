//! A value and a timeout in one turn: the value wins, and is not lost.

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, sleep, spawn, timeout_after};

use super::given::{MS, VALUE, compute};

/// Asks the task `sender`, which gives `VALUE`, and waits for 20 ms at most.
pub async fn ask(cpu: SimClock) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        sleep(10 * MS).await?;
        // The asker is ready from here on, and cannot run before this task leaves the CPU.
        let sent = sender.send(VALUE);
        assert!(sent.is_ok(), "the asker waits");
        compute(&cpu, 30 * MS);
        Ok::<_, Error>(())
    };
    spawn("sender", answer).detached().await;
    timeout_after(20 * MS, receiver).await
}
