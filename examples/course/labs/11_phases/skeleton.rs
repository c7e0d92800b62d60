//! Yours: a connection, phase by phase.

use super::given::Peer;
use super::kernel::Interrupt;

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    peer.first_byte().await?;
    while peer.line().await? {}
    todo!("a deadline for each phase, and 408 if the head was too slow")
}
