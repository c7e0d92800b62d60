// says: line #0202: `deaf` is `answered 408` at 3612.000000, and `closed` between 16.000000 and 16.200000 is right; there are 4 s for the answer, from 12.000000 on; arm the deadline for that, and guard the wait
// demand: The others are closed without a word.
//! Yours: a connection, phase by phase.

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    deadline.arm(HEAD);
    match deadline.guard(head(&peer)).await {
        Ok(()) => {
            deadline.arm(WRITE);
            deadline.guard(peer.answer(200)).await
        }
        // Its time is over, so there is none to limit.
        Err(why) if why.kind() == Kind::TaskTimeout => peer.answer(408).await,
        Err(why) => Err(why),
    }
}

async fn head(peer: &Peer) -> Result<(), Interrupt> {
    while peer.line().await? {}
    Ok(())
}
