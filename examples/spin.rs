//! A task that computes for three seconds: every other task waits, and the watchdog reports why.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use common::Lesson;
use kernel::{Sim, SimClock};
use traps::{Error, sleep, spawn};

const MS: Duration = Duration::from_millis(1);

/// Uses the CPU for three seconds. On the virtual clock, only advances the time.
fn compute(clock: Option<SimClock>) {
    let start = Instant::now();
    match clock {
        Some(clock) => clock.advance(3000 * MS),
        None => while start.elapsed() < 3000 * MS {},
    }
    common::complain("the computation is over");
}

pub async fn lesson(clock: Option<SimClock>) -> Result<(), Error> {
    let spin = async move {
        sleep(10 * MS).await?;
        compute(clock);
        sleep(10 * MS).await
    };
    let mut spin = spawn("spin", spin).await;
    let mut other = spawn("other", sleep(20 * MS)).await;
    other.join().await??;
    spin.join().await??;
    Ok(())
}

fn main() -> ExitCode {
    let args = Lesson::parse("spin", "A task that computes for three seconds: try --watchdog 100");
    let sim = Sim::new();
    let clock = args.virtual_clock.then(|| sim.clock());
    args.run(sim, lesson(clock))
}
