// says: line #0134: `trickle` is `closed` at 11.000000, where `answered 408` by 12.200000 is right; a head that is too slow is answered with 408
//! Yours: a connection, phase by phase.

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    deadline.arm(HEAD);
    deadline.guard(head(&peer)).await?;
    deadline.arm(WRITE);
    deadline.guard(peer.answer(200)).await
}

async fn head(peer: &Peer) -> Result<(), Interrupt> {
    while peer.line().await? {}
    Ok(())
}
