// says: line #0264: `transfer` returns, and `late` has given no money; no task has cancelled it by then; that comes only at 7.000000
// demand: A transfer is given up only if it is cancelled.
//! Yours: a transfer that is never half done.

use std::time::Duration;

use super::given::Bank;
use super::kernel::{Interrupt, shield, timeout_after};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    let result = work(bank).await;
    shield(bank.unlock()).await?;
    result
}

async fn work(bank: Bank) -> Result<(), Interrupt> {
    // It takes two seconds.
    timeout_after(Duration::from_secs(3), bank.look_up()).await?;
    shield(async {
        bank.take().await?;
        bank.give().await
    })
    .await
}
