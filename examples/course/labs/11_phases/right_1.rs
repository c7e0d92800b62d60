//! Yours: a connection, phase by phase.

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind};

/// Waits for a request, reads its head, and answers. No timeout_after is needed.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    let mut has_begun = false;
    let request = async {
        deadline.arm(FIRST);
        peer.first_byte().await?;
        has_begun = true;
        deadline.arm(HEAD);
        while peer.line().await? {}
        Ok(())
    };
    // One guard for two phases.
    let read: Result<(), Interrupt> = deadline.guard(request).await;
    let status = match read {
        Ok(()) => 200,
        Err(why) if has_begun && why.kind() == Kind::TaskTimeout => 408,
        Err(why) => return Err(why),
    };
    deadline.arm(WRITE);
    deadline.guard(peer.answer(status)).await
}
