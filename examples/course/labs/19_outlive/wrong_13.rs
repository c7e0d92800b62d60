// says: line #0011: the task `minute` sleeps until 60.000000 while the thread works, which is a guess; the work may take longer, so wait for what the thread does last
// demand: No guess.
//! A helper task that was spawned before the job sleeps for a minute, which must be enough.

use std::time::Duration;

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, sleep, spawn, timeout_after, yield_now};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let theirs = UniversalEvent::new();
    let mut minute = spawn("minute", sleep(Duration::from_secs(60))).await;
    yield_now().await?;
    let _ = timeout_after(patience, run_in_thread(move || work(&theirs))).await;
    minute.join().await??;
    Ok(())
}
