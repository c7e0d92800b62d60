// says: line #0163: the cancellation of `last` ended its wait while it unlocked, and the accounts are still locked
// demand: Locked at the start, unlocked at the end.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Interrupt, shield, yield_now};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    let result = work(bank).await;
    // Takes what the shield has held back.
    _ = yield_now().await;
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
