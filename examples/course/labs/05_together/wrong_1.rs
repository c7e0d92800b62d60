// says: line 20: job 2 begins at 0.300000, and not at 0; spawn all jobs before you wait for one of them
// demand: All jobs begin at 0 s.
//! Yours: jobs side by side.

use super::given::Job;
use super::kernel::spawn;

/// Runs the jobs side by side. Returns their outputs in the order of the jobs.
pub async fn all(jobs: Vec<Job>) -> Vec<u32> {
    let mut outputs = Vec::new();
    for job in jobs {
        outputs.push(spawn("job", job).await.join().await);
    }
    outputs
}
