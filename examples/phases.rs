//! One deadline for a whole connection, armed again for each phase.

use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use common::Lesson;
use kernel::Sim;
use traps::{Interrupt, Kind, WaitQueue, connection_deadline, sleep, spawn};

fn tenths(n: u64) -> Duration {
    Duration::from_millis(100 * n)
}

/// A peer that sends a head and a body in time, and then falls silent.
pub async fn phases() -> Result<(), Interrupt> {
    let news = Rc::new(WaitQueue::new());
    let sends = news.clone();
    let peer = async move {
        for pause in [3, 4] {
            sleep(tenths(pause)).await?;
            sends.wake(1);
        }
        Ok::<(), Interrupt>(())
    };
    spawn("peer", peer).detached().await;

    let deadline = connection_deadline().await;
    deadline.guard(tenths(10), news.wait()).await?; // the head
    deadline.guard(tenths(30), news.wait()).await?; // the body
    let idle = deadline.guard(tenths(5), news.wait()).await; // the next head, which never comes
    assert_eq!(idle.map_err(|why| why.kind()), Err(Kind::TaskTimeout));
    Ok(())
}

fn main() -> ExitCode {
    Lesson::parse("phases", "One deadline for a connection, armed anew for each phase")
        .run(Sim::new(), phases())
}
