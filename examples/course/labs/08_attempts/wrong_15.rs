// says: call 3, line #0076: it returns the interrupt of scope s11, which is around attempt 2 too; return the interrupt of a timeout around attempt 3 alone
// demand: Three attempts are the most.
//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, Kind, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    // Three seconds for all of them.
    timeout_after(3 * SECOND, three()).await
}

async fn three() -> Result<u32, Interrupt> {
    let mut last = match timeout_after(SECOND, fetch(1)).await {
        Err(why) if why.kind() == Kind::TaskTimeout => why,
        result => return result,
    };
    for n in 2..=3 {
        match timeout_after(SECOND, fetch(n)).await {
            Err(why) if why.kind() == Kind::TaskTimeout => last = why,
            result => return result,
        }
    }
    // None had a value.
    Err(last)
}
