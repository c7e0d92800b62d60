// says: line #0096: `chatty` begins its request 2 at 3.500000, and the shutdown began at 2.000000; the connection was not told that its answer is the last
// demand: No request begins.
//! Yours: a shutdown in phases.

use super::given::{Connections, DRAIN};
use super::kernel::{Error, Interrupt, Task, timeout_after};

/// Ends the server. A request that has begun is answered if that takes at most `DRAIN`.
pub async fn shut_down(
    acceptor: Task<Result<(), Interrupt>>,
    connections: Connections,
) -> Result<(), Error> {
    acceptor.cancel().await?;
    let mut open = connections.take();
    for (task, state) in &open {
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
        for (task, _) in &open {
            task.cancel().await?;
        }
    }
    Ok(())
}
