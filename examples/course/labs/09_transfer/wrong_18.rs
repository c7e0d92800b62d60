// says: line #0250: a timeout ended the wait of `pressed` while it unlocked, and the accounts are still locked
// demand: Locked at the start, unlocked at the end.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Interrupt, shield};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    if let Err(why) = bank.look_up().await {
        shield(bank.unlock()).await?;
        return Err(why);
    }
    if let Err(why) = bank.take().await {
        bank.unlock().await?;
        return Err(why);
    }
    shield(async {
        bank.give().await?;
        bank.unlock().await
    })
    .await
}
