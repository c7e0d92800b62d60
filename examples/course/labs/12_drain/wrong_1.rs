// says: line #0078: `busy` is cancelled at 2.000000, and the request that it has begun in line #0039 is lost; it would have been answered in time
// demand: What has begun is answered.
//! Yours: a shutdown in phases.

use super::given::Connections;
use super::kernel::{Error, Interrupt, Task};

/// Ends the server. A request that has begun is answered if that takes at most `DRAIN`.
pub async fn shut_down(
    acceptor: Task<Result<(), Interrupt>>,
    connections: Connections,
) -> Result<(), Error> {
    acceptor.cancel().await?;
    for (task, _) in &connections.take() {
        task.cancel().await?;
    }
    Ok(())
}
