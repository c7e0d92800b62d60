//! Yours: a connection as a machine of states.

use std::time::Duration;

use super::given::{FIRST, HEAD, Peer, WRITE};
use super::kernel::{ConnectionDeadline, Interrupt, Kind};

enum Phase {
    First,
    Head,
    Answer(u32),
}

impl Phase {
    fn limit(&self) -> Duration {
        match self {
            Phase::First => FIRST,
            Phase::Head => HEAD,
            Phase::Answer(_) => WRITE,
        }
    }

    /// Does the phase; returns the next.
    async fn pass(&self, peer: &Peer) -> Result<Option<Phase>, Interrupt> {
        Ok(match self {
            Phase::First => peer.first_byte().await.map(|()| Some(Phase::Head))?,
            Phase::Head if peer.line().await? => Some(Phase::Head),
            Phase::Head => Some(Phase::Answer(200)),
            Phase::Answer(status) => peer.answer(*status).await.map(|()| None)?,
        })
    }
}

/// Waits for a request, reads its head, and answers.
pub async fn serve(peer: Peer) -> Result<(), Interrupt> {
    let deadline = ConnectionDeadline::new().await;
    let mut phase = Phase::First;
    deadline.arm(phase.limit());
    loop {
        let next = match deadline.guard(phase.pass(&peer)).await {
            Err(why) if why.kind() == Kind::TaskTimeout && matches!(phase, Phase::Head) => {
                Some(Phase::Answer(408))
            }
            passed => passed?,
        };
        let Some(next) = next else { return Ok(()) };
        // Another line of the head is no new phase.
        if !matches!((&phase, &next), (Phase::Head, Phase::Head)) {
            deadline.arm(next.limit());
        }
        phase = next;
    }
}
