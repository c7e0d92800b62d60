// says: line #0029: `caller` has returned at 60.000000, and the thread of o1, abandoned in #0018, still works: no `orphan o1` is before this line; wait for what the thread does last
// demand: The caller outlives the thread.
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
