//! Given: a task that needs the CPU every 10 ms, and one that always has something to do.

use std::time::Duration;

use kernel::{Sim, SimClock};
use testing::Setup;
use traps::channel::mpsc;
use traps::{Error, note, sleep, spawn};

pub const MS: Duration = Duration::from_millis(1);

/// Where the work on an item is done.
pub struct Bench(SimClock);

impl Bench {
    /// Takes a millisecond of the CPU.
    pub fn work(&self, item: u32) {
        self.0.advance(MS);
        note(format!("item {item}"));
    }
}

async fn tick() -> Result<(), Error> {
    for tick in 1..=4 {
        sleep(10 * MS).await?;
        note(format!("tick {tick}"));
    }
    Ok(())
}

pub fn main(_seed: u64) {
    let sim = Sim::new();
    let bench = Bench(sim.clock());
    let ran = Setup::new().sim(sim).run(async {
        let (sender, items) = mpsc::named("items", 40);
        for item in 1..=40 {
            sender.send(item).await?;
        }
        drop(sender);
        let mut ticker = spawn("ticker", tick()).await;
        let mut pump = spawn("pump", super::lab::pump(items, bench)).await;
        ticker.join().await??;
        pump.join().await?
    });
    ran.output.expect("nothing interrupts these tasks");
    print!("{}", ran.trace);
}
