// says: line 23: jobs 1 and 2 both run in task 2; give each job a task of its own
// demand: Each job has a task of its own.
//! Yours: jobs side by side.

use super::given::Job;
use super::kernel::spawn;

/// Runs the jobs side by side. Returns their outputs in the order of the jobs.
pub async fn all(jobs: Vec<Job>) -> Vec<u32> {
    let mut jobs = jobs.into_iter();
    let mut tasks = Vec::new();
    while let Some(first) = jobs.next() {
        // Two jobs a task save tasks.
        let second = jobs.next();
        let both = async move {
            let mut outputs = vec![first.await];
            if let Some(second) = second {
                outputs.push(second.await);
            }
            outputs
        };
        tasks.push(spawn("jobs", both).await);
    }
    let mut outputs = Vec::new();
    for task in &mut tasks {
        outputs.extend(task.join().await);
    }
    outputs
}
