// says: line #0012: the scope was closed late, but there was no race: when the deadline 0.020000 passed, the asker did not wait, it had the CPU itself; another task must hold the CPU while the asker is ready
//! The asker does the work itself, so nobody gives it a value while it waits.

use kernel::SimClock;
use traps::{Error, sleep, timeout_after};

use super::given::{MS, VALUE, compute};

pub async fn ask(cpu: SimClock) -> Result<u32, Error> {
    timeout_after(20 * MS, async {
        sleep(10 * MS).await?;
        compute(&cpu, 30 * MS);
        Ok(VALUE)
    })
    .await
}
