//! Given: runs `lab::ask` and writes its result into the log.

use std::time::Duration;

use kernel::{Kernel, Sim, SimClock};
use traps::note;

use super::lab;
use super::scenario;

/// The question of the asker.
pub struct Question(u32);

impl Question {
    /// Answers the question. The log shows which task does it.
    #[allow(dead_code, reason = "not yet used by the skeleton")]
    pub fn answer(self) -> u32 {
        note(format!("answers {}", self.0));
        self.0
    }
}

/// Holds the CPU for a span, as a computation does: no other task runs, and time passes.
#[allow(dead_code, reason = "not yet used by the skeleton")]
pub fn compute(cpu: &SimClock, span: Duration) {
    cpu.advance(span);
}

pub fn main(seed: u64) {
    let scenario = scenario::of(seed);
    let sim = Sim::new();
    let cpu = sim.clock();
    let mut kernel = Kernel::new(sim);
    kernel.trace_to(std::io::stdout());
    let asked = async {
        match lab::ask(cpu, scenario.patience, Question(scenario.answer)).await {
            Ok(value) => note(format!("the asker has {value}")),
            Err(error) => note(format!("the asker has nothing: {error}")),
        }
    };
    kernel.run(asked).unwrap_or_else(|error| panic!("{error}"));
    kernel.shutdown().unwrap_or_else(|error| panic!("in the shutdown, {error}"));
}
