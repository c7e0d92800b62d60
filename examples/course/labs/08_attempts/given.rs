//! Given: a fetch that is slow at first, and two callers.

use std::time::Duration;

use super::kernel::{Interrupt, Kernel, Sim, note, sleep, timeout_after};

pub const SECOND: Duration = Duration::from_secs(1);

/// The n-th attempt, from 1.
pub async fn fetch(n: u32) -> Result<u32, Interrupt> {
    note(format_args!("attempt {n}"));
    sleep(if n < 3 { 2 * SECOND } else { SECOND / 2 }).await?;
    Ok(n)
}

async fn call(limit: Duration) {
    match timeout_after(limit, super::lab::attempts()).await {
        Ok(value) => note(format_args!("value {value}")),
        Err(why) => note(format_args!("no value: {:?}", why.kind())),
    }
}

pub fn main(_seed: u64) {
    let ran = Kernel::new(Sim::new()).run(async {
        call(5 * SECOND).await;
        call(3 * SECOND / 2).await;
    });
    if let Err(error) = ran {
        println!("# {error}");
    }
}
