// says: line #0011: here a sleep of the asker itself races with the timeout around it; the value is to come from another task
// demand: The answer of the sender.
//! A sleep that ends with the deadline around it does race, but no value is sent.

use std::time::Duration;

use kernel::SimClock;
use traps::{Error, sleep, timeout_after};

use super::given::Question;

pub async fn ask(_cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    timeout_after(patience, async {
        sleep(patience).await?;
        Ok(question.answer())
    })
    .await
}
