// says: line #0135: `middle` notes `taken` after `given`; the order is: lock, look up, take, give, unlock
// demand: Each step once, in the order.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Interrupt, shield};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    let result = work(bank).await;
    shield(bank.unlock()).await?;
    result
}

async fn work(bank: Bank) -> Result<(), Interrupt> {
    bank.look_up().await?;
    // The customer waits for the money.
    shield(async {
        bank.give().await?;
        bank.take().await
    })
    .await
}
