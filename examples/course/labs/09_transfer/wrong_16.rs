// says: line #0285: a timeout ended the wait of `hurried` while it gave; the money was taken in line #0229, and is lost
// demand: Money that was taken is given.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::Interrupt;

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    let result = work(bank).await;
    if bank.unlock().await.is_err() {
        bank.unlock().await?;
    }
    result
}

async fn work(bank: Bank) -> Result<(), Interrupt> {
    bank.look_up().await?;
    bank.take().await?;
    // What was interrupted has done nothing, so it is done again.
    if bank.give().await.is_err() {
        bank.give().await?;
    }
    Ok(())
}
