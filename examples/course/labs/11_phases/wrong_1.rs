// says: line #0250: `trickle` is `answered 200` at 62.000000, where `answered 408` by 12.200000 is right; it sent a line every 3 s, and the head took a minute; the time of the head begins with its first byte, and no line gives it more
//! Yours: a connection, phase by phase.

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    deadline.arm(HEAD);
    let status = match deadline.guard(head(&peer, &deadline)).await {
        Ok(()) => 200,
        Err(why) if why.kind() == Kind::TaskTimeout => 408,
        Err(why) => return Err(why),
    };
    deadline.arm(WRITE);
    deadline.guard(peer.answer(status)).await
}

async fn head(peer: &Peer, deadline: &ConnectionDeadline) -> Result<(), Interrupt> {
    while peer.line().await? {
        // It is alive.
        deadline.arm(HEAD);
    }
    Ok(())
}
