// says: call 1, line #0013: attempt 1 timed out after 1 s, and the call ends with `no value: UncaughtTimeout`; your own timeout is handled where it belongs: try again
// demand: Your own timeout is tried again.
//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    for n in 1..3 {
        let value = timeout_after(SECOND, fetch(n)).await?;
        if value > 0 {
            return Ok(value);
        }
    }
    timeout_after(SECOND, fetch(3)).await
}
