// says: call 7, line #0149: attempt 2 begins at 10.330000, although the deadline of the caller has passed; a `timeout-cancellation` is not yours: return it
// demand: Every other interrupt is returned at once.
//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, clock, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    let mut n = 1;
    loop {
        let end = clock().await + SECOND;
        let result = timeout_after(SECOND, fetch(n)).await;
        // After a whole second it was this timeout.
        if result.is_ok() || clock().await < end || n == 3 {
            return result;
        }
        n += 1;
    }
}
