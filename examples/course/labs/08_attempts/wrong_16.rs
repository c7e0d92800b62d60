// says: call 5, line #0087: attempt 1 returned 4000000001, and the call ends with `value 10241`
// demand: The value is that of the attempt.
//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, Kind, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    let mut n: u16 = 1;
    loop {
        match timeout_after(SECOND, fetch(n.into())).await {
            Ok(value) => return Ok(u32::from(value as u16)),
            Err(why) if why.kind() == Kind::TaskTimeout && n < 3 => n += 1,
            Err(why) => return Err(why),
        }
    }
}
