//! Given: runs `lab::caller` where the job of a thread takes 20 ms.

use std::time::Duration;

use kernel::{Kernel, Sim};
use traps::note;
use traps::universal::UniversalEvent;

use super::lab;

/// The unit of this lab.
pub const MS: Duration = Duration::from_millis(1);

/// The work of the thread. It cannot be interrupted. At its end it sets `over`.
pub fn work(over: &UniversalEvent) -> u32 {
    over.set();
    42
}

pub fn main(_seed: u64) {
    // By script each job takes 20 ms, and its closure runs at the last instant.
    let mut kernel = Kernel::new(Sim::new().jobs_take(20 * MS));
    kernel.trace_to(std::io::stdout());
    let caller = async {
        if let Err(error) = lab::caller().await {
            note(format!("the caller failed: {error}"));
        }
    };
    kernel.run(caller).unwrap_or_else(|error| panic!("{error}"));
    kernel.shutdown().unwrap_or_else(|error| panic!("in the shutdown, {error}"));
}
