// says: line #0087: the transfer of `early` was given up, and `transfer` returns `Ok`; its caller takes it for done
// demand: The caller learns the truth.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Interrupt, shield};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    // Cancelled or not, the accounts are to be unlocked.
    _ = work(bank).await;
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
