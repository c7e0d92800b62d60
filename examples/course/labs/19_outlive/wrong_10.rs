// says: line #0022: `caller` has returned at 0.010000, and the thread of o1, abandoned in #0015, still works: no `orphan o1` is before this line; wait for what the thread does last
// demand: The caller outlives the thread.
//! A helper task that waits for the thread, and a caller that waits for neither.

use std::time::Duration;

use traps::shutdown::hold;
use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, sleep, spawn, timeout_after};

use super::given::work;

pub async fn caller(patience: Duration) -> Result<(), Error> {
    let hold = hold();
    let helper = async move {
        let _hold = hold;
        let over = UniversalEvent::new();
        let theirs = over.clone();
        let _ = timeout_after(patience, run_in_thread(move || work(&theirs))).await;
        over.wait().await
    };
    spawn("helper", helper).detached().await;
    sleep(patience * 2).await?;
    Ok(())
}
