// says: call 3, line #0069: it returns the interrupt of scope s9, which fired at 5.000000, before attempt 3; return the interrupt of attempt 3
// demand: Three attempts are the most.
//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, Kind, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    let mut first = None;
    for n in 1..=3 {
        match timeout_after(SECOND, fetch(n)).await {
            Err(why) if why.kind() == Kind::TaskTimeout => _ = first.get_or_insert(why),
            result => return result,
        }
    }
    Err(first.expect("three attempts have failed"))
}
