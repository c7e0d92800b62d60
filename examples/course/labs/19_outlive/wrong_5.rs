// says: line #0018: your program ends at 0.015000, and the thread of o1, abandoned in #0011, still works: no `orphan o1` is before this line; wait for what the thread does last
//! A sleep that is shorter than the rest of the work.

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, sleep, timeout_after};

use super::given::{MS, work};

pub async fn caller() -> Result<(), Error> {
    let theirs = UniversalEvent::new();
    let job = run_in_thread(move || work(&theirs));
    let _ = timeout_after(5 * MS, job).await;
    sleep(10 * MS).await?;
    Ok(())
}
