//! Yours: jobs side by side.

use std::cell::RefCell;
use std::rc::Rc;

use super::given::Job;
use super::kernel::spawn;

/// Runs the jobs side by side. Returns their outputs in the order of the jobs.
pub async fn all(jobs: Vec<Job>) -> Vec<u32> {
    let outputs = Rc::new(RefCell::new(vec![0; jobs.len()]));
    let mut tasks = Vec::new();
    for (nth, job) in jobs.into_iter().enumerate() {
        let outputs = outputs.clone();
        let body = async move {
            let output = job.await;
            println!("job {} gives {output}", nth + 1);
            outputs.borrow_mut()[nth] = output;
        };
        tasks.push(spawn("job", body).await);
    }
    // Whichever task is joined first.
    for mut task in tasks.into_iter().rev() {
        task.join().await;
    }
    outputs.take()
}
