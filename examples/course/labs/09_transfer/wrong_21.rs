// says: line #0093: the cancellation of `early` ended its wait in line #0053, and `transfer` returns `!timeout`; return the interrupt of the wait
// demand: The caller learns the truth.
//! Yours: a transfer that is never half done.

use std::time::Duration;

use super::given::Bank;
use super::kernel::{Interrupt, shield, sleep, timeout_after};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    if bank.look_up().await.is_err() {
        shield(bank.unlock()).await?;
        // The interrupt is gone, so this makes another.
        let late = async { sleep(Duration::from_secs(1)).await.map(|_| ()) };
        return timeout_after(Duration::ZERO, late).await;
    }
    shield(async {
        bank.take().await?;
        bank.give().await?;
        bank.unlock().await
    })
    .await
}
