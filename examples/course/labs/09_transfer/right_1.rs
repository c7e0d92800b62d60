//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Interrupt, shield};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    // If the wait of `take` is interrupted, nothing was taken, so there is nothing to give.
    let result = match bank.look_up().await {
        Ok(()) => bank.take().await,
        interrupted => interrupted,
    };
    if result.is_ok() {
        shield(bank.give()).await?;
    }
    // No impl Drop: a destructor cannot await.
    shield(bank.unlock()).await?;
    result
}
