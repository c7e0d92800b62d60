// says: line #0111: the shutdown is over at 61.000000, and `stuck` was never cancelled, whose request needed until 61.000000; a drain has a limit, which is 10 s here
// demand: After ten seconds the rest is cancelled.
//! Yours: a shutdown in phases.

use super::given::Connections;
use super::kernel::{Error, Interrupt, Task};

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
        task.join().await?;
    }
    Ok(())
}
