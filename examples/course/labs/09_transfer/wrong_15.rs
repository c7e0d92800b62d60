// says: line #0146: what `middle` notes as `given` has begun at 2.000000, before it noted `taken` in line #0134; a step begins when the one before has ended
// demand: Each step once, in the order.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Error, Interrupt, shield, spawn};

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    let result = work(bank).await;
    shield(bank.unlock()).await?;
    result
}

async fn work(bank: Bank) -> Result<(), Interrupt> {
    bank.look_up().await?;
    // Both at the same time.
    let mut giver = spawn("giver", bank.give()).await;
    let done = shield(async {
        bank.take().await?;
        giver.join().await?.map_err(Error::from)
    });
    match done.await {
        Ok(()) => Ok(()),
        Err(Error::Interrupt(interrupt)) => Err(interrupt),
        Err(Error::Io(error)) => unreachable!("a bank has no sockets: {error}"),
    }
}
