// says: line #0158: `late` notes `taken` again, after line #0107; each step is done once
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
    // An interrupt comes once, so the second attempt is a whole one.
    if take_and_give(bank).await.is_err() {
        take_and_give(bank).await?;
    }
    Ok(())
}

async fn take_and_give(bank: Bank) -> Result<(), Interrupt> {
    bank.take().await?;
    bank.give().await
}
