// says: line #1330: `hasty` is `answered 408` at 5.200000, and `closed` at 4.200000 is right; a timeout of the server around it fired at 4.200000: return an interrupt that is not the timeout of your deadline
// demand: A slow head is answered with 408.
//! Yours: a connection, phase by phase.

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    deadline.arm(HEAD);
    let status = match deadline.guard(head(&peer)).await {
        Ok(()) => 200,
        Err(why) if why.kind() != Kind::Cancelled => 408,
        Err(why) => return Err(why),
    };
    deadline.arm(WRITE);
    deadline.guard(peer.answer(status)).await
}

async fn head(peer: &Peer) -> Result<(), Interrupt> {
    while peer.line().await? {}
    Ok(())
}
