// says: line #0071: `quick` makes another connection deadline; one serves all phases, if it is armed again for each
// demand: One connection deadline, and no timeout.
//! Yours: a connection, phase by phase.

use std::rc::Rc;

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind, spawn};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let peer = Rc::new(peer);
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    let reader = read(peer.clone());
    let read = spawn("reader", reader).await.join().await;
    let status = match read.expect("nobody cancels a connection") {
        Ok(()) => 200,
        Err(why) if why.kind() == Kind::TaskTimeout => 408,
        Err(why) => return Err(why),
    };
    deadline.arm(WRITE);
    deadline.guard(peer.answer(status)).await
}

async fn read(peer: Rc<Peer>) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(HEAD);
    deadline.guard(head(&peer)).await
}

async fn head(peer: &Peer) -> Result<(), Interrupt> {
    while peer.line().await? {}
    Ok(())
}
