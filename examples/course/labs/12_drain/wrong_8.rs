// says: line #0113: `stuck` is cancelled at 15.000000; all requests together have 10 s, until 12.000000
// demand: After ten seconds the rest is cancelled.
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
        state.is_closing.set(true);
        if state.is_idle.get() {
            task.cancel().await?;
        }
    }
    for (task, _) in &mut open {
        if timeout_after(DRAIN, task.join()).await.is_err() {
            task.cancel().await?;
        }
    }
    Ok(())
}
