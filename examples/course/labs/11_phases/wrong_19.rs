// says: line #2584: `refused` ends, and is neither answered nor closed; the server cancelled it at 12.500000: return an interrupt that is not the timeout of your deadline
// demand: A slow head is answered with 408.
//! A cancellation while the peer takes a 408 is lost.

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
        Err(why) if why.kind() == Kind::TaskTimeout => 408,
        Err(why) => return Err(why),
    };
    deadline.arm(WRITE);
    match deadline.guard(peer.answer(status)).await {
        Err(why) if status == 408 && why.kind() != Kind::TaskTimeout => Ok(()),
        result => result,
    }
}

async fn head(peer: &Peer) -> Result<(), Interrupt> {
    while peer.line().await? {}
    Ok(())
}
