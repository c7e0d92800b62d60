// says: line #0142: `late-3` begins its request 1 at 5.200000, and the shutdown began at 2.700000; the acceptor was awake then, and accepted it: look for idle connections when the acceptor has ended
// demand: Idle connections are cancelled at once.
//! The connection that is accepted at the moment of the shutdown is not cancelled.

use super::given::{Connections, DRAIN};
use super::kernel::{Error, Interrupt, Task, timeout_after};

/// Ends the server. A request that has begun is answered if that takes at most `DRAIN`.
pub async fn shut_down(
    acceptor: Task<Result<(), Interrupt>>,
    connections: Connections,
) -> Result<(), Error> {
    for (_, state) in connections.borrow().iter() {
        state.is_closing.set(true);
    }
    acceptor.cancel().await?;
    let mut open = connections.take();
    for (task, state) in &open {
        if state.is_closing.get() && state.is_idle.get() {
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
