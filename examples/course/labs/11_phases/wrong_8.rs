// says: line #0126: `silent` is `closed` at 4.800000, and `closed` between 5.000000 and 5.100000 is right; a deadline must not come too early: there are 5 s for the first byte, from 0.000000 on
// demand: No deadline is early.
//! Yours: a connection, phase by phase.

use std::time::Duration;

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind};

/// The table is scanned now and then.
const MARGIN: Duration = Duration::from_millis(200);

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST - MARGIN);
    deadline.guard(peer.first_byte()).await?;
    deadline.arm(HEAD - MARGIN);
    let status = match deadline.guard(head(&peer)).await {
        Ok(()) => 200,
        Err(why) if why.kind() == Kind::TaskTimeout => 408,
        Err(why) => return Err(why),
    };
    deadline.arm(WRITE - MARGIN);
    deadline.guard(peer.answer(status)).await
}

async fn head(peer: &Peer) -> Result<(), Interrupt> {
    while peer.line().await? {}
    Ok(())
}
