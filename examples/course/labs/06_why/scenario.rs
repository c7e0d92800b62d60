//! The tasks of a run, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

/// A task, with the tasks that it spawns first and joins at its end.
pub struct Job {
    pub name: &'static str,
    pub takes: Duration,
    pub children: Vec<Job>,
    /// A child that the job spawns after its sleep.
    pub late: Option<Box<Job>>,
}

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Job {
    match seed {
        0 => job("tea", 0, vec![job("water", 3000, vec![]), job("cup", 1000, vec![])]),
        1 => {
            let stove = job("stove", 200, vec![job("match", 50, vec![]), job("gas", 700, vec![])]);
            let mut water = job("water", 100, vec![stove, job("tap", 400, vec![])]);
            water.late = Some(Box::new(job("honey", 100, vec![])));
            job("tea", 10, vec![job("cup", 0, vec![]), water, job("leaves", 3000, vec![])])
        }
        _ => {
            let mut job = drawn(seed, 1, 4);
            job.children.push(after_a_child());
            // One scenario has a chain of 274 numbers, and takes five times as long.
            job.children.push(nested(if seed == 2 { 90 } else { 40 }));
            job
        }
    }
}

fn job(name: &'static str, millis: u64, children: Vec<Job>) -> Job {
    Job { name, takes: Duration::from_millis(millis), children, late: None }
}

/// A job that spawns a child because another has ended: the chain has two spawns of one parent.
fn after_a_child() -> Job {
    let mut job = job("tap", 0, vec![job("cup", 0, vec![])]);
    job.late = Some(Box::new(self::job("gas", 0, vec![])));
    job
}

/// A job with this many generations below it, each of one child: the chains are long.
fn nested(depth: u64) -> Job {
    let child = depth.checked_sub(1).map(nested);
    job("kettle", if depth == 0 { 50 } else { 0 }, child.into_iter().collect())
}

/// Draws a job with up to two children, and with fewer than `depth` generations below it.
fn drawn(seed: u64, nth: u64, depth: u64) -> Job {
    const NAMES: [&str; 8] = ["tea", "water", "cup", "stove", "gas", "tap", "leaves", "honey"];
    let count = if depth == 1 { 0 } else { draw(seed, nth, 3).max(depth.saturating_sub(2)) };
    let children = (0..count.min(2)).map(|child| drawn(seed, 2 * nth + child, depth - 1));
    let name = NAMES[draw(seed, nth + 100, 8) as usize];
    let mut job = job(name, 20 * draw(seed, nth + 200, 9), children.collect());
    if draw(seed, nth + 300, 2) == 1 {
        job.late = job.children.pop().map(Box::new);
    }
    job
}
