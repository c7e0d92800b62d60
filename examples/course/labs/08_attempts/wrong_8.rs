// says: call 2, line #0031: attempt 2 returned 7, and the call ends with `value 2`
// demand: The value is that of the attempt.
//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, Kind, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    let mut n = 1;
    loop {
        match timeout_after(SECOND, fetch(n)).await {
            Err(why) if why.kind() == Kind::TaskTimeout && n < 3 => n += 1,
            result => return result.map(|_| n),
        }
    }
}
