//! Given: work of different lengths, to be done at regular times.

use super::kernel::{Kernel, Sim, clock, sleep};
use super::lab::every;
use super::scenario::{self, Scenario};

async fn drummer(Scenario { start, period, work }: Scenario) {
    sleep(start).await;
    let times = work.len() as u32;
    every(period, times, async |nth| {
        clock().await;
        println!("beat {nth}");
        if let Some(span) = work.get((nth as usize).wrapping_sub(1)) {
            sleep(*span).await;
        }
        println!("beat {nth} is over");
    })
    .await;
}

pub fn main(seed: u64) {
    for (nth, scenario) in (1..).zip(scenario::of(seed)) {
        if nth > 1 {
            println!("drummer {nth}");
        }
        let mut kernel = Kernel::new(Sim::new());
        kernel.add(drummer(scenario));
        if let Err(error) = kernel.run() {
            println!("{error}");
        }
    }
}
