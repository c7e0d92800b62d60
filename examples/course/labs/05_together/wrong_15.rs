// says: line 77: the outputs are [10240], and not [4000000000]: each output belongs at the place of its job, whichever job ends or is joined first
// demand: The outputs are `[30, 10, 20]`.
//! Yours: jobs side by side.

use super::given::Job;
use std::cell::RefCell;
use std::rc::Rc;

use super::kernel::spawn;

/// Runs the jobs side by side. Returns their outputs in the order of the jobs.
pub async fn all(jobs: Vec<Job>) -> Vec<u32> {
    let slots = Rc::new(RefCell::new(vec![0; jobs.len()]));
    let mut tasks = Vec::new();
    for (nth, job) in jobs.into_iter().enumerate() {
        let slots = slots.clone();
        let kept = async move {
            let output = job.await;
            slots.borrow_mut()[nth] = output as u16;
        };
        tasks.push(spawn("job", kept).await);
    }
    for task in &mut tasks {
        task.join().await;
    }
    slots.take().into_iter().map(u32::from).collect()
}
