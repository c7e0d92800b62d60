//! Breakfast: tea takes three seconds, an egg two.

use std::time::Duration;

use traps::{Error, sleep, spawn};

pub async fn breakfast() -> Result<(), Error> {
    let mut tea = spawn("tea", sleep(Duration::from_secs(3))).await;
    let mut egg = spawn("egg", sleep(Duration::from_secs(2))).await;
    tea.join().await??;
    egg.join().await??;
    Ok(())
}

/// The log of a run on the virtual clock.
pub fn log() -> String {
    testing::run(breakfast()).trace
}
