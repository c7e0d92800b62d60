// says: line 3148: `all` returned 128 outputs for 300 jobs
// demand: The outputs are `[30, 10, 20]`.
//! Yours: jobs side by side.

use super::given::Job;
use super::kernel::spawn;

/// Runs the jobs side by side. Returns their outputs in the order of the jobs.
pub async fn all(jobs: Vec<Job>) -> Vec<u32> {
    let mut outputs = [0; 128];
    let count = jobs.len();
    let mut tasks = Vec::new();
    for job in jobs {
        tasks.push(spawn("job", job).await);
    }
    for (output, task) in outputs.iter_mut().zip(&mut tasks) {
        *output = task.join().await;
    }
    outputs.into_iter().take(count).collect()
}
