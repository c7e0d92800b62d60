//! Given: three jobs.

use std::pin::Pin;
use std::time::Duration;

use super::kernel::{Kernel, Sim, sleep};

pub type Job = Pin<Box<dyn Future<Output = u32>>>;

/// A job that takes so many tenths of a second.
fn job(tenths: u32) -> Job {
    Box::pin(async move {
        sleep(Duration::from_millis(u64::from(100 * tenths))).await;
        10 * tenths
    })
}

pub fn main() {
    let ran = Kernel::new(Sim::new()).run(async {
        let outputs = super::lab::all(vec![job(3), job(1), job(2)]).await;
        println!("outputs {outputs:?}");
    });
    if let Err(error) = ran {
        println!("{error}");
    }
}
