//! Given: five peers, some of which are slow.

use std::cell::Cell;
use std::time::Duration;

use super::kernel::{Error, Interrupt, Kernel, Sim, note, sleep, spawn};

const SECOND: Duration = Duration::from_secs(1);

/// For the first byte of a request.
pub const FIRST: Duration = Duration::from_secs(5);
/// From the first byte to the end of the head.
pub const HEAD: Duration = Duration::from_secs(10);
/// For the peer to take the answer.
pub const WRITE: Duration = Duration::from_secs(4);

/// A client, and how many seconds it needs for what.
pub struct Peer {
    first: u32,
    line: u32,
    lines: Cell<u32>,
    take: u32,
}

impl Peer {
    /// Waits for the first byte of a request.
    pub async fn first_byte(&self) -> Result<(), Interrupt> {
        sleep(self.first * SECOND).await?;
        Ok(())
    }

    /// Waits for a line of the head. False: it was the last.
    pub async fn line(&self) -> Result<bool, Interrupt> {
        sleep(self.line * SECOND).await?;
        self.lines.set(self.lines.get() - 1);
        Ok(self.lines.get() > 0)
    }

    /// Answers, and waits until the peer has taken the answer.
    pub async fn answer(&self, status: u32) -> Result<(), Interrupt> {
        sleep(self.take * SECOND).await?;
        note(format_args!("answered {status}"));
        Ok(())
    }
}

/// Longer than anybody waits.
const NEVER: u32 = 3600;

async fn connection(peer: Peer) {
    if super::lab::serve(peer).await.is_err() {
        note("closed");
    }
}

async fn main_task() -> Result<(), Error> {
    let mut tasks = Vec::new();
    for (name, first, lines, line, take) in [
        ("quick", 1, 2, 1, 1),
        ("patient", 4, 2, 4, 3),
        ("silent", NEVER, 1, 1, 1),
        ("trickle", 1, 20, 3, 1),
        ("greedy", 1, 1, 1, NEVER),
    ] {
        let peer = Peer { first, line, lines: Cell::new(lines), take };
        tasks.push(spawn(name, connection(peer)).await);
    }
    for task in &mut tasks {
        task.join().await?;
    }
    Ok(())
}

pub fn main(_seed: u64) {
    let ran = Kernel::new(Sim::new()).run(main_task());
    ran.expect("everybody ends").expect("nobody cancels `main`");
}
