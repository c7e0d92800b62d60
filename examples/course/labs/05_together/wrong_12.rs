// says: your program panicked at src/lab.rs:10: removal index (is 0) should be < len (is 0)
// demand: The outputs are `[30, 10, 20]`.
//! Yours: jobs side by side, one after the other in a chain.

use super::given::Job;
use super::kernel::spawn;

/// Runs the jobs side by side. Returns their outputs in the order of the jobs.
pub async fn all(mut jobs: Vec<Job>) -> Vec<u32> {
    let mut first = spawn("job", jobs.remove(0)).await;
    let rest = if jobs.is_empty() { Vec::new() } else { Box::pin(all(jobs)).await };
    [vec![first.join().await], rest].concat()
}
