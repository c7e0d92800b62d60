// says: call 3, line #0075: it returns the interrupt of scope s12, which was opened in line #0069, when attempt 3 was over; return the interrupt of attempt 3
// demand: Three attempts are the most.
//! Yours: three attempts, each with a timeout of its own.

use std::time::Duration;

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, Kind, sleep, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    for n in 1..=3 {
        match timeout_after(SECOND, fetch(n)).await {
            Err(why) if why.kind() == Kind::TaskTimeout => {}
            result => return result,
        }
    }
    // The interrupts of the attempts are gone, so this makes another.
    let late = async { sleep(SECOND).await.map(|_| 0) };
    timeout_after(Duration::ZERO, late).await
}
