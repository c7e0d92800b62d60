//! Given: tasks that await your futures, and one that yields with the kernel's own future.

use super::kernel::{Kernel, yield_now};
use super::lab::give_way;
use super::scenario;

async fn yours(task: usize, counts: Vec<u32>) {
    // All are there before the first is awaited.
    let futures: Vec<_> = counts.into_iter().map(|times| (times, give_way(times))).collect();
    for (times, future) in futures {
        future.await;
        println!("task {task}: give_way({times}) is ready");
    }
}

async fn other(times: u32) {
    for _ in 0..times {
        yield_now().await;
    }
}

pub fn main(seed: u64) {
    let tasks = scenario::of(seed).tasks;
    let longest = tasks.iter().map(|counts| counts.iter().sum()).max().unwrap_or(0);
    let mut kernel = Kernel::new();
    for (nth, counts) in tasks.into_iter().enumerate() {
        kernel.add(yours(nth + 1, counts));
    }
    kernel.add(other(longest + 2));
    if let Err(error) = kernel.run() {
        println!("{error}");
    }
}
