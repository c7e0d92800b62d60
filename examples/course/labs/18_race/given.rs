//! Given: runs `lab::ask` and says in the log what it came to.

use std::time::Duration;

use kernel::{Kernel, Sim, SimClock};
use traps::note;

use super::lab;

/// The unit of this lab.
pub const MS: Duration = Duration::from_millis(1);

/// What the asker is to get.
#[allow(dead_code, reason = "not yet used by the skeleton")]
pub const VALUE: u32 = 42;

/// Holds the CPU for a span, as a computation does: no other task runs, and time passes.
#[allow(dead_code, reason = "not yet used by the skeleton")]
pub fn compute(cpu: &SimClock, span: Duration) {
    cpu.advance(span);
}

pub fn main(_seed: u64) {
    let sim = Sim::new();
    let cpu = sim.clock();
    let mut kernel = Kernel::new(sim);
    kernel.trace_to(std::io::stdout());
    let asked = async {
        match lab::ask(cpu).await {
            Ok(value) => note(format!("the asker has {value}")),
            Err(error) => note(format!("the asker has nothing: {error}")),
        }
    };
    kernel.run(asked).unwrap_or_else(|error| panic!("{error}"));
    kernel.shutdown().unwrap_or_else(|error| panic!("in the shutdown, {error}"));
}
