// says: line #0277: a timeout ended the wait of `hurried` while it gave; the money was taken in line #0233, and is lost
// demand: Money that was taken is given.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::Interrupt;

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    if let Err(why) = bank.look_up().await {
        three_times(async || bank.unlock().await).await?;
        return Err(why);
    }
    three_times(async || bank.take().await).await?;
    three_times(async || bank.give().await).await?;
    three_times(async || bank.unlock().await).await
}

/// Does a step again if it is interrupted. More than two interrupts will not come.
async fn three_times(step: impl AsyncFn() -> Result<(), Interrupt>) -> Result<(), Interrupt> {
    for _ in 0..2 {
        if step().await.is_ok() {
            return Ok(());
        }
    }
    step().await
}
