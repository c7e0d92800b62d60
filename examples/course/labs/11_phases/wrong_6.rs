// says: line #0164: `trickle` is `closed` at 11.000000, and `answered 408` between 12.000000 and 12.100000 is right; a head that is too slow is answered with 408
// demand: A slow head is answered with 408.
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
