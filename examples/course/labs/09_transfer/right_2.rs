//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Error, Interrupt, Task, shield, spawn};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    let result = bank.look_up().await;
    let is_found = result.is_ok();
    // Nobody knows this task, so nobody cancels it.
    let rest = spawn("rest", async move {
        if is_found {
            bank.take().await?;
            bank.give().await?;
        }
        bank.unlock().await
    });
    finish(rest.await).await?;
    result
}

async fn finish(mut rest: Task<Result<(), Interrupt>>) -> Result<(), Interrupt> {
    match shield(rest.join()).await {
        Ok(result) => result,
        Err(Error::Interrupt(interrupt)) => Err(interrupt),
        Err(other) => panic!("{other}"),
    }
}
