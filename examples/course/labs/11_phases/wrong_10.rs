// says: line #0144: `silent` is `answered 408` at 6.000000, and `closed` between 5.000000 and 5.100000 is right; a connection without a request is closed without a word
// demand: The others are closed without a word.
//! Yours: a connection, phase by phase.

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    let first = deadline.guard(peer.first_byte()).await;
    deadline.arm(HEAD);
    let head = match first {
        Ok(()) => deadline.guard(head(&peer)).await,
        late => late,
    };
    let status = match head {
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
