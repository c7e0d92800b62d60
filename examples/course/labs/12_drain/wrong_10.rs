// says: line #0110: `stuck` is cancelled at 7.000000; requests that have begun have 10 s, until 12.000000
// demand: After ten seconds the rest is cancelled.
//! Yours: a shutdown in phases.

use std::time::Duration;

use super::given::Connections;
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
    let drained = timeout_after(Duration::from_secs(5), async {
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
