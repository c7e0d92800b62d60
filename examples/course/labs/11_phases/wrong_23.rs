// says: line #0115: `quick` waits again, and was `answered 200` in line #0113; a connection ends with its answer
// demand: A request gets one answer.
//! Yours: a connection, phase by phase.

use std::time::Duration;

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind, sleep};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    deadline.arm(HEAD);
    let status = match deadline.guard(head(&peer)).await {
        Ok(()) => 200,
        Err(why) if why.kind() == Kind::TaskTimeout => 408,
        Err(why) => return Err(why),
    };
    deadline.arm(WRITE);
    deadline.guard(peer.answer(status)).await?;
    // The client closes first.
    sleep(Duration::from_secs(1)).await?;
    Ok(())
}

async fn head(peer: &Peer) -> Result<(), Interrupt> {
    while peer.line().await? {}
    Ok(())
}
