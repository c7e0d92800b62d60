// says: line 9: task 1 has no job, and waits by `sleep`; wait for the end of a job by `join`
// demand: The other tasks wait by `join` only.
//! Yours: jobs side by side.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::given::Job;
use super::kernel::{sleep, spawn};

/// Runs the jobs side by side. Gives their outputs in the order of the jobs.
pub async fn all(jobs: Vec<Job>) -> Vec<u32> {
    let outputs = Rc::new(RefCell::new(vec![None; jobs.len()]));
    for (nth, job) in jobs.into_iter().enumerate() {
        let outputs = outputs.clone();
        spawn("job", async move {
            let output = job.await;
            outputs.borrow_mut()[nth] = Some(output);
        })
        .await;
    }
    while outputs.borrow().iter().any(Option::is_none) {
        sleep(Duration::from_millis(1)).await;
    }
    let outputs = outputs.borrow();
    outputs.iter().flatten().copied().collect()
}
