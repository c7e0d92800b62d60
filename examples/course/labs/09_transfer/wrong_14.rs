// says: line #0072: `transfer` returns to `middle`, and its task 12 `mover` is still at work; join what you have spawned
// demand: Locked at the start, unlocked at the end.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Interrupt, shield, spawn};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    if let Err(interrupt) = bank.look_up().await {
        shield(bank.unlock()).await?;
        return Err(interrupt);
    }
    // Nobody cancels this task.
    spawn("mover", async move {
        bank.take().await?;
        bank.give().await?;
        bank.unlock().await
    })
    .await;
    Ok(())
}
