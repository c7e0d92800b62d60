//! A thread that outlives its caller, and a program that outlives the thread.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread};

use super::given::work;

/// Waits for the work for `patience`, then gives up. Returns once the thread has ended.
pub async fn caller(patience: Duration) -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let _job = run_in_thread(move || work(&theirs));
    todo!("the wait of {patience:?} for the job, and the wait for the end of its thread")
}
