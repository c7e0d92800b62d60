// says: line #1857: `unwanted` is `answered 408` at 7.300000, and `closed` at 6.300000 is right; the server cancelled it at 6.300000: return an interrupt that is not the timeout of your deadline
// demand: A slow head is answered with 408.
//! Yours: a connection, phase by phase.

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    deadline.arm(HEAD);
    let head = async {
        while peer.line().await? {}
        Ok::<_, Interrupt>(())
    };
    // The only error is that the head is too slow.
    let status = if deadline.guard(head).await.is_ok() { 200 } else { 408 };
    deadline.arm(WRITE);
    deadline.guard(peer.answer(status)).await
}
