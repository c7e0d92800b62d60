// says: line #0254: `quick` is `answered 200` at 0.600000, and `answered 200` at 9.700000 is right; its head had not ended yet: that is when `line` returns false, and not before
// demand: Each phase has a time of its own.
//! A head of twenty lines at most.

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind};

/// A head has no more lines.
const MOST: usize = 20;

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    deadline.arm(HEAD);
    let head = async {
        for _ in 0..MOST {
            if !peer.line().await? {
                break;
            }
        }
        Ok::<(), Interrupt>(())
    };
    let status = match deadline.guard(head).await {
        Ok(()) => 200,
        Err(why) if why.kind() == Kind::TaskTimeout => 408,
        Err(why) => return Err(why),
    };
    deadline.arm(WRITE);
    deadline.guard(peer.answer(status)).await
}
