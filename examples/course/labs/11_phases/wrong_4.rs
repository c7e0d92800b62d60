// says: line #0020: `quick` opens a timeout: that is a timer to set and to clear for each phase; arm a connection deadline, which is a store
// demand: One connection deadline, and no timeout.
//! Yours: a connection, phase by phase.

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{Interrupt, Kind, timeout_after};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    timeout_after(FIRST, peer.first_byte()).await?;
    let status = match timeout_after(HEAD, head(&peer)).await {
        Ok(()) => 200,
        Err(why) if why.kind() == Kind::TaskTimeout => 408,
        Err(why) => return Err(why),
    };
    timeout_after(WRITE, peer.answer(status)).await
}

async fn head(peer: &Peer) -> Result<(), Interrupt> {
    while peer.line().await? {}
    Ok(())
}
