// says: call 3, line #0071: it returns the interrupt of scope s10, which is around attempt 2 too; return the interrupt of a timeout around attempt 3 alone
// demand: Each attempt is under a timeout of 1 s.
//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, Kind, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    // The attempts have three seconds, so the third needs no timeout of its own.
    timeout_after(3 * SECOND, async {
        for n in 1..=2 {
            match timeout_after(SECOND, fetch(n)).await {
                Err(why) if why.kind() == Kind::TaskTimeout => {}
                result => return result,
            }
        }
        fetch(3).await
    })
    .await
}
