//! Step 9: a task is cancelled, cleans up, and finishes its shielded part.

// This program uses only a part of the kernel.
#[allow(dead_code, unused_imports)]
mod kernel;

use std::time::Duration;

use kernel::{Error, Kernel, Sim, note, shield, sleep, spawn};

const SECOND: Duration = Duration::from_secs(1);

/// Works until it is cancelled, and then says goodbye, which takes a second.
async fn polite() -> Result<(), Error> {
    let result = sleep(60 * SECOND).await;
    if result.is_err() {
        sleep(SECOND).await?;
        note("goodbye");
    }
    result?;
    Ok(())
}

/// Has a part that must not be interrupted.
async fn careful() -> Result<(), Error> {
    shield(async {
        sleep(3 * SECOND).await?;
        note("written");
        Ok::<_, Error>(())
    })
    .await?;
    sleep(60 * SECOND).await?;
    Ok(())
}

async fn main_task() -> Result<(), Error> {
    let polite = spawn("polite", polite()).await;
    let careful = spawn("careful", careful()).await;
    sleep(SECOND).await?;
    polite.cancel().await?;
    careful.cancel().await?;
    Ok(())
}

fn main() -> std::io::Result<()> {
    Kernel::new(Sim::new()).run(main_task())?.map_err(std::io::Error::other)
}
