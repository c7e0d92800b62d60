//! Step 3: the same run on a virtual clock, in no time.

// This program uses only a part of the kernel.
#[allow(dead_code, unused_imports)]
mod kernel;

use std::time::Duration;

use kernel::{Kernel, Machine, Real, Sim, sleep};

/// Prints `millis` after this many milliseconds: the sleeps sort the numbers.
async fn say(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
    println!("{millis}");
}

fn run(machine: impl Machine) -> std::io::Result<()> {
    let mut kernel = Kernel::new(machine);
    for millis in [300, 100, 200] {
        kernel.add(say(millis));
    }
    kernel.run()
}

/// With `--real`, runs on the real clock.
fn main() -> std::io::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("--real") => run(Real::new()),
        _ => run(Sim::new()),
    }
}
