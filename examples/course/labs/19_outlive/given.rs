//! Given: runs `lab::caller`, and prints at the end how often the work was done.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kernel::{Kernel, Sim};
use traps::note;
use traps::universal::UniversalEvent;

use super::lab;
use super::scenario;

/// The number of times that `work` was called.
static DONE: AtomicU32 = AtomicU32::new(0);

/// The work of the thread. It cannot be interrupted. At its end it sets `over`.
#[allow(dead_code, reason = "not every solution does the work")]
pub fn work(over: &UniversalEvent) -> u32 {
    DONE.fetch_add(1, Ordering::Relaxed);
    over.set();
    42
}

pub fn main(seed: u64) {
    let scenario = scenario::of(seed);
    // The script says how long the first job takes. Its closure runs at the last instant. Each
    // further job takes no time.
    let mut takes = Some(scenario.takes);
    let mut kernel =
        Kernel::new(Sim::new().job_spans(move |_| Some(takes.take().unwrap_or(Duration::ZERO))));
    kernel.trace_to(std::io::stdout());
    let caller = async {
        match lab::caller(scenario.patience).await {
            Ok(()) => note("the caller has returned"),
            Err(error) => note(format!("the caller has failed: {error}")),
        }
    };
    kernel.run(caller).unwrap_or_else(|error| panic!("{error}"));
    kernel.shutdown().unwrap_or_else(|error| panic!("in the shutdown, {error}"));
    drop(kernel);
    println!("# the work was done {} times", DONE.load(Ordering::Relaxed));
}
