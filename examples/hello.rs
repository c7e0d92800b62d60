//! Spawn, sleep, join: the smallest program with two tasks.

use std::process::ExitCode;
use std::time::Duration;

use common::Lesson;
use kernel::Sim;
use traps::{Error, sleep, spawn};

pub async fn hello() -> Result<(), Error> {
    let mut child = spawn("child", async {
        sleep(Duration::from_millis(500)).await?;
        Ok::<_, traps::Interrupt>("hello")
    })
    .await;
    sleep(Duration::from_secs(1)).await?;
    child.join().await??;
    Ok(())
}

pub fn main() -> ExitCode {
    Lesson::parse("hello", "Two tasks: spawn, sleep, join").run(Sim::new(), hello())
}
