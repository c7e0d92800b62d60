//! Given: work of different lengths, every 100 ms.

use std::time::Duration;

use super::kernel::{Kernel, Sim, clock, sleep};
use super::lab::every;

const MS: Duration = Duration::from_millis(1);

/// How many milliseconds each beat takes.
const WORK: [u32; 8] = [30, 30, 250, 30, 30, 30, 30, 30];

async fn beat(nth: u32) {
    clock().await;
    println!("beat {nth}");
    sleep(WORK[nth as usize - 1] * MS).await;
}

async fn drummer() {
    sleep(7 * MS).await;
    every(100 * MS, 8, beat).await;
}

pub fn main(_seed: u64) {
    let mut kernel = Kernel::new(Sim::new());
    kernel.add(drummer());
    if let Err(error) = kernel.run() {
        println!("{error}");
    }
}
