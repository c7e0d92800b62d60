//! Step 6: the log names the cause of each line.

// This program uses only a part of the kernel.
#[allow(dead_code, unused_imports)]
mod kernel;

use std::time::Duration;

use kernel::{Kernel, Sim, note, sleep, spawn};

async fn tea() {
    let mut water = spawn("water", async {
        sleep(Duration::from_secs(3)).await;
        "hot water"
    })
    .await;
    let mut cup = spawn("cup", async {
        sleep(Duration::from_secs(1)).await;
        "a cup"
    })
    .await;
    let (cup, water) = (cup.join().await, water.join().await);
    note(format_args!("{water} is in {cup}"));
}

fn main() -> std::io::Result<()> {
    Kernel::new(Sim::new()).run(tea())
}
