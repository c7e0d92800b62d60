// says: call 1, line #0013: attempt 1 returned a value at 2.000000; each attempt must be under a timeout of 1 s of its own
// demand: Each attempt is under a timeout of 1 s.
//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, Kind, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    timeout_after(3 * SECOND, async {
        let mut n = 1;
        loop {
            match fetch(n).await {
                Err(why) if why.kind() == Kind::TaskTimeout && n < 3 => n += 1,
                result => return result,
            }
        }
    })
    .await
}
