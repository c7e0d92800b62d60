// says: line #0015: the job o1 is done and its caller still waits: the shield of #0007 held the timeout back; it is the thread that goes on by itself, and it needs no shield
//! A shield around the job: it is not abandoned, because its caller is not interrupted.

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, shield, timeout_after};

use super::given::{MS, work};

pub async fn caller() -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = shield(run_in_thread(move || work(&theirs)));
    let _ = timeout_after(5 * MS, job).await;
    over.wait().await?;
    Ok(())
}
