// says: line #0015: the error of the timeout left `caller` at once, so the program ends while the thread of o1, abandoned in #0011, works; the error is expected here, and the wait for the thread comes after it
//! The error of the timeout goes up at once, past the wait for the thread.

use traps::universal::UniversalEvent;
use traps::{Error, run_in_thread, timeout_after};

use super::given::{MS, work};

pub async fn caller() -> Result<(), Error> {
    let over = UniversalEvent::new();
    let theirs = over.clone();
    let job = run_in_thread(move || work(&theirs));
    timeout_after(5 * MS, job).await?;
    over.wait().await?;
    Ok(())
}
