//! Yours: a shutdown in phases.

use super::given::{Connections, DRAIN};
use super::kernel::{Error, Interrupt, Task, clock, timeout_after};

/// Ends the server. A request that has begun is answered if that takes at most `DRAIN`.
pub async fn shut_down(
    acceptor: Task<Result<(), Interrupt>>,
    connections: Connections,
) -> Result<(), Error> {
    let end = clock().await + DRAIN;
    acceptor.cancel().await?;
    let (idle, busy): (Vec<_>, Vec<_>) =
        connections.take().into_iter().partition(|(_, state)| state.is_idle.get());
    busy.iter().for_each(|(_, state)| state.is_closing.set(true));
    for (task, _) in idle {
        task.cancel().await?;
    }
    for (mut task, _) in busy {
        // Each has what is left of the time of all.
        let left = end.since(clock().await);
        if timeout_after(left, task.join()).await.is_err() {
            task.cancel().await?;
        }
    }
    Ok(())
}
