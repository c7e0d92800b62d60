// says: line #0178: `transfer` returns an interrupt to `middle`, and the money was given in line #0135; its caller would give it again
// demand: The caller learns the truth.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Interrupt, shield, yield_now};

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
        bank.give().await
    })
    .await?;
    // Who is cancelled has to hear of it.
    yield_now().await
}
