//! Step 1: two futures take turns.

// This program uses it in part.
#[allow(dead_code, unused_imports)]
mod kernel;

use kernel::{Kernel, yield_now};

/// Says its name three times, and lets the other go first each time.
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
