//! Yours: three attempts, each with a timeout of its own, written out by a macro.

use super::given::{SECOND, fetch};
use super::kernel::{Interrupt, Kind, timeout_after};

macro_rules! first_of {
    ($last:literal) => {
        timeout_after(SECOND, fetch($last)).await
    };
    ($n:literal or $($rest:tt)*) => {
        match timeout_after(SECOND, fetch($n)).await.map_err(|why| (why.kind(), why)) {
            Err((Kind::TaskTimeout, _)) => first_of!($($rest)*),
            other => other.map_err(|(_, why)| why),
        }
    };
}

/// Makes up to three attempts, each under a timeout of 1 s. Returns the first value.
pub async fn attempts() -> Result<u32, Interrupt> {
    first_of!(1 or 2 or 3)
}
