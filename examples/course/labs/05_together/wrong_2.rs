// says: 0 of the 3 jobs have a task of their own; who awaits a future runs it in its own task, and does nothing else meanwhile
//! Yours: jobs side by side.

use super::given::Job;

/// Runs the jobs side by side. Gives their outputs in the order of the jobs.
pub async fn all(jobs: Vec<Job>) -> Vec<u32> {
    let mut outputs = Vec::new();
    for job in jobs {
        outputs.push(job.await);
    }
    outputs
}
