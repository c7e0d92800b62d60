// says: line #0013: the scope was closed late, but there was no race: the deadline 0.020000 passed in the turn in which the asker runs, in #0010, and the kernel looks at its timers only between turns; the CPU must be held past the deadline in the turn of `send`, while the asker is only ready
// demand: A race that the value wins.
//! The asker does the work itself, so no task gives it a value while it waits.

use std::time::Duration;

use kernel::SimClock;
use traps::{Error, sleep, timeout_after};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    timeout_after(patience, async {
        sleep(patience / 2).await?;
        compute(&cpu, patience);
        Ok(question.answer())
    })
    .await
}
