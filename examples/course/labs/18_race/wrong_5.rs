// says: line #0011: here a sleep of the asker itself races with the timeout around it; the value is to come from another task
//! A sleep that ends with the deadline around it does race, but no value is sent.

use kernel::SimClock;
use traps::{Error, sleep, timeout_after};

use super::given::{MS, VALUE};

pub async fn ask(_cpu: SimClock) -> Result<u32, Error> {
    timeout_after(20 * MS, async {
        sleep(20 * MS).await?;
        Ok(VALUE)
    })
    .await
}
