// says: line 3: job 1 runs in task 1, which is main; to await a future runs it in the task that awaits it, and this task does nothing else in the meantime
// demand: Each job has a task of its own.
//! Yours: jobs side by side.

use super::given::Job;

/// Runs the jobs side by side. Returns their outputs in the order of the jobs.
pub async fn all(jobs: Vec<Job>) -> Vec<u32> {
    let mut outputs = Vec::new();
    for job in jobs {
        outputs.push(job.await);
    }
    outputs
}
