//! Yours: a connection, phase by phase.

use std::time::Duration;

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind, clock};

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    within(&deadline, FIRST, peer.first_byte()).await?;
    let end = clock().await + HEAD;
    loop {
        // For each line there is what the lines before have left.
        let left = end.since(clock().await);
        match within(&deadline, left, peer.line()).await {
            Ok(true) => {}
            Ok(false) => return within(&deadline, WRITE, peer.answer(200)).await,
            Err(late) if late.kind() == Kind::TaskTimeout => break,
            Err(other) => return Err(other),
        }
    }
    within(&deadline, WRITE, peer.answer(408)).await
}

async fn within<T>(
    deadline: &ConnectionDeadline,
    span: Duration,
    phase: impl Future<Output = Result<T, Interrupt>>,
) -> Result<T, Interrupt> {
    deadline.arm(span);
    let result = deadline.guard(phase).await;
    deadline.disarm();
    result
}
