// says: line #0149: the shutdown is over at 12.700000, and the last connection, `long`, had ended at 12.500000 in line #0145; join the connections
// demand: The shutdown ends with the last connection.
//! Yours: a shutdown in phases.

use super::given::{Connections, DRAIN};
use super::kernel::{Error, Interrupt, Task, sleep};

/// Ends the server. A request that has begun is answered if that takes at most `DRAIN`.
pub async fn shut_down(
    acceptor: Task<Result<(), Interrupt>>,
    connections: Connections,
) -> Result<(), Error> {
    acceptor.cancel().await?;
    let open = connections.take();
    for (task, state) in &open {
        state.is_closing.set(true);
        if state.is_idle.get() {
            task.cancel().await?;
        }
    }
    sleep(DRAIN).await?;
    for (task, _) in &open {
        task.cancel().await?;
    }
    Ok(())
}
