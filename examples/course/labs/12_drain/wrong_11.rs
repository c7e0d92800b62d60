// says: line #0135: the shutdown is over at 12.000000, and `stuck` has not cleaned up; wait for the end of a task that you cancel
// demand: A cancelled request cleans up.
//! Yours: a shutdown in phases.

use super::given::{Connections, DRAIN};
use super::kernel::{Error, Interrupt, Task, spawn, timeout_after, yield_now};

/// Ends the server. A request that has begun is answered if that takes at most `DRAIN`.
pub async fn shut_down(
    acceptor: Task<Result<(), Interrupt>>,
    connections: Connections,
) -> Result<(), Error> {
    acceptor.cancel().await?;
    let mut open = connections.take();
    for (task, state) in &open {
        state.is_closing.set(true);
        if state.is_idle.get() {
            task.cancel().await?;
        }
    }
    let drained = timeout_after(DRAIN, async {
        for (task, _) in &mut open {
            task.join().await?;
        }
        Ok::<_, Error>(())
    });
    if drained.await.is_err() {
        for (task, _) in open {
            spawn("canceller", async move { task.cancel().await }).await;
        }
        // All of them run.
        yield_now().await?;
    }
    Ok(())
}
