// says: line #0107: the shutdown is over, and `stuck` was never cancelled; its task is dropped, and does not clean up
// demand: A cancelled request cleans up.
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
    let drained = timeout_after(DRAIN, async {
        for (task, _) in &mut open {
            task.join().await?;
        }
        Ok::<_, Error>(())
    });
    // Who is not done by now has had his time.
    _ = drained.await;
    Ok(())
}
