//! Given: two tasks that wait for your future, and one that gives way with the kernel's own.

use super::kernel::{Kernel, yield_now};
use super::lab::give_way;

async fn yours(times: u32) {
    give_way(times).await;
    println!("gave way {times} times");
}

async fn other() {
    for _ in 0..5 {
        yield_now().await;
    }
}

pub fn main(_seed: u64) {
    let mut kernel = Kernel::new();
    kernel.add(yours(3));
    kernel.add(yours(0));
    kernel.add(other());
    if let Err(error) = kernel.run() {
        println!("{error}");
    }
}
