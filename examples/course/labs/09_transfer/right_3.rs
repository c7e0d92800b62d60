//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Interrupt, shield};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    let result = match bank.look_up().await {
        Ok(()) => shield(move_money(bank)).await,
        Err(interrupt) => Err(interrupt),
    };
    // A transfer is cancelled once at most.
    while bank.unlock().await.is_err() {}
    result
}

async fn move_money(bank: Bank) -> Result<(), Interrupt> {
    bank.take().await?;
    bank.give().await?;
    Ok(())
}
