// says: line #0228: the task `head` goes on, and `trickle` was `answered 408` in line #0215; a guard interrupts its own task, and no task that this one has spawned
// demand: A request gets one answer.
//! The head is read by a task of its own, which goes on.

use std::rc::Rc;

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Error, Interrupt, Kind, spawn};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    deadline.arm(HEAD);
    let peer = Rc::new(peer);
    let reader = peer.clone();
    let head = async {
        let lines = async move {
            while reader.line().await? {}
            Ok::<(), Interrupt>(())
        };
        match spawn("head", lines).await.join().await {
            Ok(result) => result,
            Err(Error::Interrupt(why)) => Err(why),
            Err(Error::Io(error)) => unreachable!("{error}"),
        }
    };
    let status = match deadline.guard(head).await {
        Ok(()) => 200,
        Err(why) if why.kind() == Kind::TaskTimeout => 408,
        Err(why) => return Err(why),
    };
    deadline.arm(WRITE);
    deadline.guard(peer.answer(status)).await
}
