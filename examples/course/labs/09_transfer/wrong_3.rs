// says: line #0100: `early` was cancelled at 1.000000, while it looked up, and notes `taken` at 4.000000; until the money is taken a transfer can be given up
// demand: A look-up can be given up.
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
    shield(async {
        bank.look_up().await?;
        bank.take().await?;
        bank.give().await
    })
    .await
}
