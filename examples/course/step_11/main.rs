//! Step 11: a thousand deadlines, and a scan that finds the one that passes.

// This program uses only a part of the kernel.
#[allow(dead_code, unused_imports)]
mod kernel;

use std::time::Duration;

use kernel::{ConnectionDeadline, Error, Kernel, Sim, note, sleep, spawn};

const SECOND: Duration = Duration::from_secs(1);

/// A connection whose peer sends something every second, and so gets ten seconds again.
async fn lively() -> Result<(), Error> {
    let deadline = ConnectionDeadline::new().await;
    for _ in 0..5 {
        deadline.arm(10 * SECOND);
        deadline.guard(sleep(SECOND)).await?;
    }
    Ok(())
}

/// A connection whose peer sends nothing.
async fn silent() -> Result<(), Error> {
    let deadline = ConnectionDeadline::new().await;
    deadline.arm(10 * SECOND);
    if let Err(interrupt) = deadline.guard(sleep(60 * SECOND)).await {
        note(interrupt);
    }
    Ok(())
}

async fn main_task(count: usize) -> Result<(), Error> {
    let mut connections = vec![spawn("silent", silent()).await];
    for number in 1..count {
        connections.push(spawn(&format!("lively-{number}"), lively()).await);
    }
    for connection in &mut connections {
        connection.join().await??;
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    // Ten connections for the page. `1000` on the command line makes a thousand.
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10);
    Kernel::new(Sim::new()).run(main_task(count))?.map_err(std::io::Error::other)
}
