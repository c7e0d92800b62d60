//! Given: a task that needs the CPU at certain times, and a task that always has work.

use std::time::Duration;

use kernel::{Sim, SimClock};
use testing::Setup;
use traps::channel::mpsc;
use traps::{Error, note, sleep, spawn};

use super::scenario;

#[allow(dead_code, reason = "not every solution names a time")]
pub const MS: Duration = Duration::from_millis(1);

/// The place of the work on an item.
pub struct Bench {
    clock: SimClock,
    work: Duration,
}

impl Bench {
    /// Uses the CPU for the work on an item: a millisecond in the scenario of the page.
    pub fn work(&self, item: u32) {
        self.clock.advance(self.work);
        note(format!("item {item}"));
    }
}

async fn tick(periods: Vec<Duration>) -> Result<(), Error> {
    for (tick, period) in (1..).zip(periods) {
        sleep(period).await?;
        note(format!("tick {tick}"));
    }
    Ok(())
}

pub fn main(seed: u64) {
    let scenario::Scenario { items: count, work, periods, is_cancelled } = scenario::of(seed);
    let sim = Sim::new();
    let bench = Bench { clock: sim.clock(), work };
    let ran = Setup::new().sim(sim).limit(100_000).run(async move {
        let (sender, items) = mpsc::named("items", count as usize);
        for item in 1..=count {
            sender.send(item).await?;
        }
        drop(sender);
        let mut ticker = spawn("ticker", tick(periods)).await;
        let mut pump = spawn("pump", super::lab::pump(items, bench)).await;
        ticker.join().await??;
        if is_cancelled {
            pump.cancel_because("the bench is closed").await?;
            return Ok(());
        }
        pump.join().await?
    });
    ran.output.expect("nothing interrupts these tasks");
    print!("{}", ran.trace);
}
