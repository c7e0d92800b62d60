// says: line 13: task 3 sleeps before job 2 begins; all jobs begin at 0 s
// demand: All jobs begin at 0 s.
//! Yours: jobs side by side.

use std::time::Duration;

use super::given::Job;
use super::kernel::{sleep, spawn};

/// Runs the jobs side by side. Returns their outputs in the order of the jobs.
pub async fn all(jobs: Vec<Job>) -> Vec<u32> {
    let mut tasks = Vec::new();
    for (nth, job) in (0..).zip(jobs) {
        let begins_later = async move {
            sleep(Duration::from_nanos(nth)).await;
            job.await
        };
        tasks.push(spawn("job", begins_later).await);
    }
    let mut outputs = Vec::new();
    for task in &mut tasks {
        outputs.push(task.join().await);
    }
    outputs
}
