//! Given: six peers, some of which are slow.

use std::cell::Cell;
use std::time::Duration;

use super::kernel::{Error, Interrupt, Kernel, Sim, Task, note, sleep, spawn, timeout_after};
use super::scenario::{self, Client, NEVER, Stop};
pub use super::scenario::{FIRST, HEAD, WRITE};

/// A client, as its connection sees it.
pub struct Peer {
    client: Client,
    /// The number of lines of the head that have arrived.
    lines: Cell<usize>,
}

fn tenths(n: u64) -> Duration {
    Duration::from_millis(100 * n)
}

impl Peer {
    /// Waits for the first byte of a request.
    pub async fn first_byte(&self) -> Result<(), Interrupt> {
        sleep(tenths(self.client.first)).await?;
        Ok(())
    }

    /// Waits for a line of the head. Returns false if it was the last.
    pub async fn line(&self) -> Result<bool, Interrupt> {
        let line = self.client.lines.get(self.lines.get());
        sleep(tenths(line.copied().unwrap_or(NEVER))).await?;
        self.lines.set(self.lines.get() + 1);
        Ok(self.lines.get() < self.client.lines.len())
    }

    /// Answers, and waits until the peer has taken the answer.
    pub async fn answer(&self, status: u32) -> Result<(), Interrupt> {
        sleep(tenths(self.client.take)).await?;
        note(format_args!("answered {status}"));
        Ok(())
    }
}

async fn connection(peer: Peer, limit: Option<Duration>) {
    let serve = super::lab::serve(peer);
    let served = match limit {
        Some(limit) => timeout_after(limit, serve).await,
        None => serve.await,
    };
    if served.is_err() {
        note("closed");
    }
}

/// Cancels a connection, as a server does that shuts down.
async fn cancel(task: Task<()>, after: Duration) {
    let cancelled = async {
        sleep(after).await?;
        task.cancel().await
    };
    cancelled.await.expect("no task cancels this one");
}

async fn main_task(clients: Vec<Client>) -> Result<(), Error> {
    let mut tasks = Vec::new();
    for client in clients {
        let (name, lines, stopped) = (client.name, Cell::new(0), client.stopped);
        let limit = stopped.filter(|(stop, _)| matches!(stop, Stop::Timeout));
        let limit = limit.map(|(_, at)| tenths(at));
        let task = spawn(name, connection(Peer { client, lines }, limit)).await;
        tasks.push(match stopped {
            Some((Stop::Cancel, at)) => spawn("boss", cancel(task, tenths(at))).await,
            _ => task,
        });
    }
    for task in &mut tasks {
        task.join().await?;
    }
    Ok(())
}

pub fn main(seed: u64) {
    let ran = Kernel::new(Sim::new()).run(main_task(scenario::of(seed)));
    ran.expect("all connections end").expect("no task cancels `main`");
}
