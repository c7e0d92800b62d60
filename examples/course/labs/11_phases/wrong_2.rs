// says: line #0170: `patient` is `answered 408` at 13.000000, and `answered 200` at 15.000000 is right; it was slow, but in time in each phase; each phase has a time of its own, which begins with it
// demand: Each phase has a time of its own.
//! Yours: a connection, phase by phase.

use super::given::{HEAD, Peer};
use super::kernel::{ConnectionDeadline, Interrupt, Kind};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(HEAD);
    deadline.guard(peer.first_byte()).await?;
    let status = match deadline.guard(head(&peer)).await {
        Ok(()) => 200,
        Err(why) if why.kind() == Kind::TaskTimeout => 408,
        Err(why) => return Err(why),
    };
    deadline.guard(peer.answer(status)).await
}

async fn head(peer: &Peer) -> Result<(), Interrupt> {
    while peer.line().await? {}
    Ok(())
}
