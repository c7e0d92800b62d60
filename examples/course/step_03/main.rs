//! Step 3: the same run on a virtual clock, in no time.

// This program uses it in part.
#[allow(dead_code, unused_imports)]
mod kernel;

use std::time::Duration;

use kernel::{Kernel, Machine, Real, Sim, sleep};

/// Sorts by sleeping.
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

/// `--real` runs it on the real clock.
fn main() -> std::io::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("--real") => run(Real::new()),
        _ => run(Sim::new()),
    }
}
