// says: call 3, line #0066: attempt 3 returned a value at 8.000000; each attempt must be under a timeout of 1 s of its own
// demand: Each attempt is under a timeout of 1 s.
//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, Kind, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    for n in 1..3 {
        match timeout_after(SECOND, fetch(n)).await {
            Err(why) if why.kind() == Kind::TaskTimeout => {}
            result => return result,
        }
    }
    // Nothing comes after the last attempt.
    fetch(3).await
}
