// says: line 66: `all` was over at 0.320000, and the longest job at 0.300000
// demand: The end is at 0.3 s.
//! Yours: jobs side by side.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::given::Job;
use super::kernel::{sleep, spawn};

/// Runs the jobs side by side. Returns their outputs in the order of the jobs.
pub async fn all(jobs: Vec<Job>) -> Vec<u32> {
    let outputs = Rc::new(RefCell::new(vec![0; jobs.len()]));
    for (nth, job) in jobs.into_iter().enumerate() {
        let outputs = outputs.clone();
        spawn("job", async move {
            let output = job.await;
            outputs.borrow_mut()[nth] = output;
        })
        .await;
    }
    // In place of a join.
    while outputs.borrow().contains(&0) {
        sleep(Duration::from_millis(40)).await;
    }
    outputs.take()
}
