// says: line #0161: a timeout ended the wait of `early` while it unlocked, and the accounts are still locked
// demand: Locked at the start, unlocked at the end.
//! Yours: a transfer that is never half done.

use std::time::Duration;

use super::given::Bank;
use super::kernel::{Interrupt, shield, timeout_after};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    if let Err(why) = bank.look_up().await {
        // A clean-up must not hang.
        shield(timeout_after(Duration::from_millis(1500), bank.unlock())).await?;
        return Err(why);
    }
    shield(async {
        bank.take().await?;
        bank.give().await?;
        bank.unlock().await
    })
    .await
}
