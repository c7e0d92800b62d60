// says: call 4, line #0076: attempt 3 begins at 6.180000, although attempt 2 failed by a timeout inside of `fetch`; an `uncaught-timeout` is not yours: return it
// demand: Every other interrupt is returned at once.
//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, Kind, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    let mut n = 1;
    loop {
        match timeout_after(SECOND, fetch(n)).await {
            Err(why) if why.kind() != Kind::TimeoutCancellation && n < 3 => n += 1,
            result => return result,
        }
    }
}
