//! Step 5: a tree of tasks.

// This program uses only a part of the kernel.
#[allow(dead_code, unused_imports)]
mod kernel;

use std::time::Duration;

use kernel::{Kernel, Sim, sleep, spawn};

/// Spawns two children, unless `depth` is 0. Returns the number of leaves.
async fn grow(depth: u64) -> u32 {
    sleep(Duration::from_millis(100 * (depth + 1))).await;
    if depth == 0 {
        return 1;
    }
    let mut left = spawn("left", Box::pin(grow(depth - 1))).await;
    let mut right = spawn("right", Box::pin(grow(depth - 1))).await;
    left.join().await + right.join().await
}

fn main() -> std::io::Result<()> {
    let leaves = Kernel::new(Sim::new()).run(grow(2))?;
    assert_eq!(leaves, 4);
    Ok(())
}
