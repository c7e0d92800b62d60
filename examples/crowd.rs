//! Sixty requests become ready while a task holds the CPU, and wait for it. The health check waits
//! for all of them, and the log shows for which tasks.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use common::Lesson;
use kernel::{Sim, SimClock};
use traps::{Error, Interrupt, Time, clock, sleep, spawn};

const MS: Duration = Duration::from_millis(1);

/// Uses the CPU for `span`. On the virtual clock, only advances the time.
fn compute(sim: &Option<SimClock>, span: Duration) {
    let start = Instant::now();
    match sim {
        Some(sim) => sim.advance(span),
        None => while start.elapsed() < span {},
    }
}

async fn serve(
    sim: Option<SimClock>,
    arrives: Duration,
    span: Duration,
) -> Result<Time, Interrupt> {
    sleep(arrives).await?;
    compute(&sim, span);
    Ok(clock().await)
}

async fn check_health(sim: Option<SimClock>) -> Result<Time, Interrupt> {
    sleep(MS).await?;
    serve(sim, 19 * MS, MS).await
}

pub async fn crowd(sim: Option<SimClock>) -> Result<(), Error> {
    let mut tasks = vec![spawn("health", check_health(sim.clone())).await];
    tasks.push(spawn("report", serve(sim.clone(), 20 * MS, 52 * MS)).await);
    for number in 1..=60 {
        let request = serve(sim.clone(), 20 * MS, MS / 4);
        tasks.push(spawn(format!("conn-{number}"), request).await);
    }
    for task in &mut tasks {
        task.join().await??;
    }
    Ok(())
}

fn main() -> ExitCode {
    let args = Lesson::parse("crowd", "Sixty requests that wait behind one long computation");
    let sim = Sim::new();
    let clock = args.virtual_clock.then(|| sim.clock());
    args.run(sim, crowd(clock))
}
