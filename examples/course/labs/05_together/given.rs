//! Given: jobs of different lengths.

use std::pin::Pin;

use super::kernel::{Kernel, Sim, clock, sleep};
use super::scenario;

pub type Job = Pin<Box<dyn Future<Output = u32>>>;

/// The job with the number `nth` in the list, from 1.
fn job(nth: usize, scenario::Job { takes, output }: scenario::Job) -> Job {
    Box::pin(async move {
        println!("job {nth} begins");
        sleep(takes).await;
        println!("job {nth} ends");
        output
    })
}

pub fn main(seed: u64) {
    for (nth, jobs) in (1..).zip(scenario::of(seed)) {
        if nth > 1 {
            println!("call {nth}");
        }
        call(jobs);
    }
}

fn call(jobs: Vec<scenario::Job>) {
    let jobs = (1..).zip(jobs).map(|(nth, each)| job(nth, each)).collect();
    let ran = Kernel::new(Sim::new()).run(async {
        let outputs = super::lab::all(jobs).await;
        clock().await;
        println!("outputs {outputs:?}");
    });
    if let Err(error) = ran {
        println!("{error}");
    }
}
