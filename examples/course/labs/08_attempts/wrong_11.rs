// says: call 2, line #0044: it returns the interrupt of scope s6, which fired at 3.500000, before attempt 2; return the interrupt of attempt 2
// demand: Every other interrupt is returned at once.
//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, Kind, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    let mut first = None;
    for n in 1..=3 {
        match timeout_after(SECOND, fetch(n)).await {
            // The last one has no other attempt.
            Err(why) if n == 3 => return Err(why),
            Err(why) if why.kind() == Kind::TaskTimeout => first = first.or(Some(why)),
            // The first error says why there was another attempt.
            Err(why) => return Err(first.unwrap_or(why)),
            Ok(value) => return Ok(value),
        }
    }
    unreachable!("the third attempt returns")
}
