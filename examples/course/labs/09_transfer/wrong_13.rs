// says: line #0171: `late` notes `given` after `unlocked`; the order is: lock, look up, take, give, unlock
// demand: Each step once, in the order.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Interrupt, shield};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    let result = work(bank).await;
    shield(bank.unlock()).await?;
    result?;
    // The money is on its way, and the account that it came from is free.
    shield(bank.give()).await
}

async fn work(bank: Bank) -> Result<(), Interrupt> {
    bank.look_up().await?;
    bank.take().await
}
