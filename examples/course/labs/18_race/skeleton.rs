//! A value and a timeout in one turn: the value must win, and must not be lost.

use kernel::SimClock;
use traps::channel::oneshot;
use traps::{Error, spawn, timeout_after};

use super::given::MS;

/// Asks the task `sender`, which gives `VALUE`, and waits for 20 ms at most.
pub async fn ask(cpu: SimClock) -> Result<u32, Error> {
    let (sender, receiver) = oneshot::channel();
    let answer = async move {
        // These two are what it works with.
        let _ = (cpu, sender);
        todo!("the work of the task `sender`")
    };
    spawn("sender", answer).detached().await;
    timeout_after(20 * MS, receiver).await
}
