// says: line #0056: `early` ends, and the accounts are still locked; `?` leaves at once, and what is written below it does not run
// demand: Locked at the start, unlocked at the end.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Interrupt, shield};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    work(bank).await?;
    shield(bank.unlock()).await
}

async fn work(bank: Bank) -> Result<(), Interrupt> {
    bank.look_up().await?;
    shield(async {
        bank.take().await?;
        bank.give().await
    })
    .await
}
