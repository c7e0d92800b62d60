//! Given: the test of `traps::ready_tasks`, the trap that you add to your kernel.

use std::time::Duration;

use kernel::{Kernel, Sim};
use traps::{Error, note, ready_tasks, sleep, spawn, yield_now};

use super::scenario;

/// Makes the trap, and notes the answer.
async fn ask() {
    note("asks");
    let count = ready_tasks().await;
    note(format!("the answer is {count}"));
}

async fn program(further: u64) -> Result<(), Error> {
    for _ in 0..further {
        spawn("further", yield_now()).detached().await;
    }
    let sleeper = async { sleep(Duration::from_millis(10)).await };
    spawn("sleeper", sleeper).detached().await;
    let walker = async {
        for _ in 0..3 {
            yield_now().await?;
        }
        Ok::<_, Error>(())
    };
    spawn("walker", walker).detached().await;
    // All tasks are ready, and none has run.
    ask().await;
    yield_now().await?;
    // The sleeper sleeps, and the others have yielded.
    ask().await;
    let asker = spawn("asker", async {
        ask().await;
        sleep(Duration::from_secs(1)).await
    });
    let mut asker = asker.await;
    // The asker has not run yet. Its first trap that can be interrupted gets the cancellation.
    asker.cancel_now("test");
    yield_now().await?;
    // The cancellation should end the sleep. The log shows whether it did.
    let _ = asker.join().await?;
    ask().await;
    Ok(())
}

pub fn main(seed: u64) {
    let mut kernel = Kernel::new(Sim::new());
    kernel.trace_to(std::io::stdout());
    let ran = kernel.run(program(scenario::of(seed))).unwrap_or_else(|error| panic!("{error}"));
    ran.unwrap_or_else(|error| panic!("{error}"));
    kernel.shutdown().unwrap_or_else(|error| panic!("in the shutdown, {error}"));
}
