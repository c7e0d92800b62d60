// says: line #0134: `quick` ends, and its task `watcher` has not ended; join what you have spawned
// demand: A request gets one answer.
//! Yours: a connection, phase by phase.

use std::time::Duration;

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind, note, sleep, spawn};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(FIRST);
    deadline.guard(peer.first_byte()).await?;
    // Says which connections are slow.
    _ = spawn("watcher", async {
        if sleep(Duration::from_secs(30)).await.is_err() {
            note("slow");
        }
    })
    .await;
    deadline.arm(HEAD);
    let status = match deadline.guard(head(&peer)).await {
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
