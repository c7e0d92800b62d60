// says: line #0134: the cancellation of `late` ended its wait while it gave; the money was taken in line #0110, and is lost
// demand: Money that was taken is given.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Interrupt, shield};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    let result = work(bank).await;
    // The interrupt that a shield has held back is pending here, so unlock in a shield, too.
    shield(bank.unlock()).await?;
    result
}

async fn work(bank: Bank) -> Result<(), Interrupt> {
    bank.look_up().await?;
    bank.take().await?;
    bank.give().await
}
