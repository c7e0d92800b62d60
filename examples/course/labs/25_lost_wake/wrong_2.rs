// says: line #0050: `reader` waits forever, because item 3 came before its wait, in line #0045, and the wake found no task: `reader` had looked, and had left the CPU at #0042 (yield)
// demand: No seed fails.
//! Yours: the mailbox, and the seeds.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

use traps::{Interrupt, WaitQueue, yield_now};

/// The seeds to explore.
pub fn seeds() -> RangeInclusive<u64> {
    1..=200
}

#[derive(Default)]
pub struct Mailbox {
    items: RefCell<VecDeque<u32>>,
    line: WaitQueue,
}

impl Mailbox {
    pub fn put(&self, item: u32) {
        self.items.borrow_mut().push_back(item);
        self.line.wake(1);
    }

    /// Takes the first item. If the mailbox is empty, waits.
    pub async fn get(&self) -> Result<u32, Interrupt> {
        loop {
            if let Some(item) = self.take() {
                return Ok(item);
            }
            // Another look, to be sure.
            if let Some(item) = self.take() {
                return Ok(item);
            }
            // If the next item arrives at once, there is no need to wait.
            yield_now().await?;
            self.line.wait().await?;
        }
    }

    fn take(&self) -> Option<u32> {
        self.items.borrow_mut().pop_front()
    }
}
