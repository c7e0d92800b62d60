//! Step 4: a task asks, and the kernel answers.

// This program uses only a part of the kernel.
#[allow(dead_code, unused_imports)]
mod kernel;

use std::time::Duration;

use kernel::{Kernel, Sim, clock, sleep, yield_now};

async fn ask(span: Duration) {
    clock().await;
    yield_now().await;
    sleep(span).await;
    clock().await;
}

fn main() -> std::io::Result<()> {
    let mut kernel = Kernel::new(Sim::new());
    kernel.add(ask(Duration::from_secs(2)));
    kernel.add(ask(Duration::from_secs(1)));
    kernel.run()
}
