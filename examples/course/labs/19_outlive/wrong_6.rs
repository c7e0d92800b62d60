// says: line #0014: the caller sleeps until 0.035000 while the thread works, which is a guess; the work may take longer, so wait for what the thread does last
//! A sleep that happens to be longer than the rest of the work.

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, sleep, timeout_after};

use super::given::{MS, work};

pub async fn caller() -> Result<(), Error> {
    let theirs = UniversalEvent::new();
    let job = run_in_thread(move || work(&theirs));
    let _ = timeout_after(5 * MS, job).await;
    sleep(30 * MS).await?;
    Ok(())
}
