//! Yours: three attempts, each with a timeout of its own.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, Kind, note, timeout_after};

/// One attempt; `None` if it took too long.
async fn attempt(n: u32) -> Result<Option<u32>, Interrupt> {
    match timeout_after(SECOND, fetch(n)).await {
        Ok(value) => Ok(Some(value)),
        Err(why) if why.kind() == Kind::TaskTimeout => {
            note(format_args!("{n} took too long"));
            Ok(None)
        }
        Err(why) => Err(why),
    }
}

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    for n in [1, 2] {
        if let Some(value) = attempt(n).await? {
            return Ok(value);
        }
    }
    timeout_after(SECOND, fetch(3)).await
}
