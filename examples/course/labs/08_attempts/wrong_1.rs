// says: call 2, line #0045: attempt 3 begins at 4.000000, although the deadline of the caller has passed; a `timeout-cancellation` is not yours: return it
// demand: Every other interrupt is returned at once.
//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    let mut n = 1;
    loop {
        match timeout_after(SECOND, fetch(n)).await {
            Err(_) if n < 3 => n += 1,
            result => return result,
        }
    }
}
