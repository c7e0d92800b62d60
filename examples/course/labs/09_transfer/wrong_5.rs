// says: line #0056: `early` ends, and the accounts are still locked; a destructor cannot await, and a future that is not polled does nothing
// demand: Locked at the start, unlocked at the end.
//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::{Interrupt, shield};

/// Unlocks the accounts, however the transfer ends.
struct Locked(Bank);

impl Drop for Locked {
    fn drop(&mut self) {
        drop(self.0.unlock());
    }
}

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    let _locked = Locked(bank);
    bank.look_up().await?;
    shield(async {
        bank.take().await?;
        bank.give().await
    })
    .await
}
