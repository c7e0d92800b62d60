// says: line #0193: `trickle` is `answered 200`, and was `answered 408` in line #0185; a request gets one answer
// demand: A request gets one answer.
//! Yours: a connection, phase by phase.

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    deadline.arm(HEAD);
    if deadline.guard(head(&peer)).await.is_err() {
        deadline.arm(WRITE);
        deadline.guard(peer.answer(408)).await?;
    }
    deadline.arm(WRITE);
    deadline.guard(peer.answer(200)).await
}

async fn head(peer: &Peer) -> Result<(), Interrupt> {
    while peer.line().await? {}
    Ok(())
}
