//! Step 10: results from other threads, and wakers.

mod flag;
// This program uses only a part of the kernel.
#[allow(dead_code, unused_imports)]
mod kernel;

use std::time::Duration;

use flag::Flag;
use kernel::{Error, Kernel, Sim, note, run_in_thread, sleep, spawn};

/// A long computation.
fn collatz(mut n: u64) -> u32 {
    let mut steps = 0;
    while n != 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

async fn raise(flag: Flag) -> Result<(), Error> {
    sleep(Duration::from_secs(1)).await?;
    flag.raise();
    Ok(())
}

async fn main_task() -> Result<(), Error> {
    let flag = Flag::default();
    let mut other = spawn("other", raise(flag.clone())).await;
    // No time passes on the virtual clock while a thread runs.
    let steps = run_in_thread(|| collatz(27)).await?;
    note(format_args!("{steps} steps"));
    flag.await;
    other.join().await?
}

fn main() -> std::io::Result<()> {
    Kernel::new(Sim::new()).run(main_task())?.map_err(std::io::Error::other)
}
