//! Step 2: a task that sleeps longer wakes later.

// This program uses only a part of the kernel.
#[allow(dead_code, unused_imports)]
mod kernel;

use std::time::Duration;

use kernel::{Kernel, sleep};

/// Prints `millis` after this many milliseconds: the sleeps sort the numbers.
async fn say(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
    println!("{millis}");
}

fn main() -> std::io::Result<()> {
    let mut kernel = Kernel::new();
    for millis in [300, 100, 200] {
        kernel.add(say(millis));
    }
    kernel.run()
}
