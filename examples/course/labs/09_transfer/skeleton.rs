//! Yours: a transfer that is never half done.

use super::given::Bank;
use super::kernel::Interrupt;

/// Locks the accounts, looks up, takes, gives, and unlocks.
pub async fn transfer(bank: Bank) -> Result<(), Interrupt> {
    bank.lock();
    todo!("what is done with the accounts that are locked")
}
