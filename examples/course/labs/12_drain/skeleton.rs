//! Yours: a shutdown in phases.

use super::given::Connections;
use super::kernel::{Error, Interrupt, Task};

/// Ends the server. A request that has begun is answered if that takes at most `DRAIN`.
pub async fn shut_down(
    acceptor: Task<Result<(), Interrupt>>,
    connections: Connections,
) -> Result<(), Error> {
    let (_, _) = (acceptor, connections);
    todo!("the phases of the shutdown")
}
