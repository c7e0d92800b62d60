// says: line #0177: `silent` is `closed` at 15.000000, and `closed` between 5.000000 and 5.100000 is right; there are 5 s for the first byte, from 0.000000 on; arm the deadline for that, and guard the wait
// demand: No deadline is late.
//! Yours: a connection, phase by phase.

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    // A request may take so long in all.
    deadline.arm(FIRST + HEAD);
    deadline.guard(peer.first_byte()).await?;
    let status = match deadline.guard(head(&peer)).await {
        Ok(()) => 200,
        Err(why) if why.kind() == Kind::TaskTimeout => 408,
        Err(why) => return Err(why),
    };
    deadline.arm(WRITE);
    deadline.guard(peer.answer(status)).await
}

async fn head(peer: &Peer) -> Result<(), Interrupt> {
    while peer.line().await? {}
    Ok(())
}
