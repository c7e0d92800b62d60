// says: task 3 is spawned at 0.300000, when the task before it has ended; spawn all jobs first, and then join them
//! Yours: jobs side by side.

use super::given::Job;
use super::kernel::spawn;

/// Runs the jobs side by side. Gives their outputs in the order of the jobs.
pub async fn all(jobs: Vec<Job>) -> Vec<u32> {
    let mut outputs = Vec::new();
    for job in jobs {
        outputs.push(spawn("job", job).await.join().await);
    }
    outputs
}
