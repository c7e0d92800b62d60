//! Step 1: two futures take turns.

// This program uses only a part of the kernel.
#[allow(dead_code, unused_imports)]
mod kernel;

use kernel::{Kernel, yield_now};

/// Prints `name` three times, and lets the other task run after each time.
async fn say(name: &str) {
    for count in 1..=3 {
        println!("{name} {count}");
        yield_now().await;
    }
}

fn main() -> std::io::Result<()> {
    let mut kernel = Kernel::new();
    kernel.add(say("tick"));
    kernel.add(say("tock"));
    kernel.run()
}
