// says: line 41: the outputs are [20, 10, 30], and not [30, 10, 20]: each output belongs at the place of its job, whichever job ends or is joined first
// demand: The outputs are `[30, 10, 20]`.
//! Yours: jobs side by side.

use super::given::Job;
use super::kernel::spawn;

/// Runs the jobs side by side. Returns their outputs in the order of the jobs.
pub async fn all(jobs: Vec<Job>) -> Vec<u32> {
    let mut tasks = Vec::new();
    for job in jobs {
        tasks.push(spawn("job", job).await);
    }
    let mut outputs = Vec::new();
    while let Some(mut task) = tasks.pop() {
        outputs.push(task.join().await);
    }
    outputs
}
