// says: line #0135: `middle` is interrupted where it would unlock: a shield had held the cancellation back, and the first wait behind it gets it
// demand: Locked at the start, unlocked at the end.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Interrupt, shield};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    let result = work(bank).await;
    bank.unlock().await?;
    result
}

async fn work(bank: Bank) -> Result<(), Interrupt> {
    bank.look_up().await?;
    shield(async {
        bank.take().await?;
        bank.give().await
    })
    .await
}
