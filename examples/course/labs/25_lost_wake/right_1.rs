//! Nothing is awaited between the look and the wait.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

use traps::{Interrupt, WaitQueue};

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

    /// Takes the first item. A sleep or a timeout would hide what is missing.
    pub async fn get(&self) -> Result<u32, Interrupt> {
        loop {
            match self.take() {
                Some(item) => return Ok(item),
                None => self.line.wait().await?,
            };
        }
    }

    fn take(&self) -> Option<u32> {
        self.items.borrow_mut().pop_front()
    }
}
