// says: call 1, line #0021: attempt 1 goes on in task 2 at 1.000000, when its time is up; the timeout ends only waits of your task
// demand: Each attempt is under a timeout of 1 s.
//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Error, Interrupt, Kind, spawn, timeout_after};

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    let mut n = 1;
    loop {
        let attempt = async {
            let mut task = spawn("attempt", fetch(n)).await;
            match task.join().await {
                Ok(result) => result,
                Err(Error::Interrupt(why)) => Err(why),
                Err(Error::Io(error)) => unreachable!("{error}"),
            }
        };
        match timeout_after(SECOND, attempt).await {
            Err(why) if why.kind() == Kind::TaskTimeout && n < 3 => n += 1,
            result => return result,
        }
    }
}
