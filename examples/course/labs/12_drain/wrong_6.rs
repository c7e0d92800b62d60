// says: line #0097: `idle` is cancelled at 12.000000; it waits for a request that has not begun, so it can go at once
//! Yours: a shutdown in phases.

use super::given::{Connections, DRAIN};
use super::kernel::{Error, Interrupt, Task, timeout_after};

/// Ends the server. Requests that have begun are answered, if that takes at most `DRAIN`.
pub async fn shut_down(
    acceptor: Task<Result<(), Interrupt>>,
    connections: Connections,
) -> Result<(), Error> {
    acceptor.cancel().await?;
    let mut open = connections.take();
    for (_, state) in &open {
        state.is_closing.set(true);
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
