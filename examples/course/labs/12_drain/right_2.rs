//! Yours: a shutdown in phases.

use super::given::{Connections, DRAIN};
use super::kernel::{Error, Interrupt, Task, spawn, timeout_after};

/// Ends the server. A request that has begun is answered if that takes at most `DRAIN`.
pub async fn shut_down(
    acceptor: Task<Result<(), Interrupt>>,
    connections: Connections,
) -> Result<(), Error> {
    acceptor.cancel().await?;
    // Each connection has a task that ends it.
    let mut enders = Vec::new();
    for (task, state) in connections.take() {
        state.is_closing.set(true);
        enders.push(spawn("ender", end(task, state.is_idle.get())).await);
    }
    for ender in &mut enders {
        ender.join().await??;
    }
    Ok(())
}

async fn end(mut task: Task<()>, is_idle: bool) -> Result<(), Error> {
    if is_idle || timeout_after(DRAIN, task.join()).await.is_err() {
        task.cancel().await?;
    }
    Ok(())
}
