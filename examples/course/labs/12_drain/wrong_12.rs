// says: line #0192: the shutdown is over at 14.550000, and `jammed` has not cleaned up; wait for the end of a task that you cancel
// demand: A cancelled request cleans up.
//! Yours: a shutdown in phases.

use std::time::Duration;

use super::given::{Connections, DRAIN};
use super::kernel::{Error, Interrupt, Task, timeout_after};

/// A clean-up needs a second. Twice that is enough.
const CLEAN_UP: Duration = Duration::from_secs(2);

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
        let cleaned = timeout_after(CLEAN_UP, async {
            for (task, _) in &open {
                task.cancel().await?;
            }
            Ok::<_, Interrupt>(())
        });
        // The rest is dropped.
        _ = cleaned.await;
    }
    Ok(())
}
