// says: line #0014: `reader` waits for a time (`set_timeout`); that hides a lost wake-up and delays its item; a wait that no wake can miss needs no clock
// demand: A wake, and no clock.
//! Yours: the mailbox, and the seeds.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

use traps::{Interrupt, WaitQueue, ignore_after};

use super::given::MS;

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
            // A wake that was lost does not matter if the wait is short.
            ignore_after(MS, self.line.wait()).await?;
        }
    }

    fn take(&self) -> Option<u32> {
        self.items.borrow_mut().pop_front()
    }
}
