// says: line #0017: `reader` waits for a time (`sleep`); that hides a lost wake-up and delays its item; a wait that no wake can miss needs no clock
// demand: A wake, and no clock.
//! A race of the wait with a sleep: the clock in another form.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

use traps::{Interrupt, WaitQueue, race, sleep};

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

    pub async fn get(&self) -> Result<u32, Interrupt> {
        loop {
            if let Some(item) = self.take() {
                return Ok(item);
            }
            race(self.line.wait(), sleep(MS)).await;
        }
    }

    fn take(&self) -> Option<u32> {
        self.items.borrow_mut().pop_front()
    }
}
