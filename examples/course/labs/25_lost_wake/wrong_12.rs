// says: line #0034: your task 5 `reader` panicked at src/lab.rs:33: the writer wakes a reader for an item
// demand: No seed fails.
//! The item is there when the reader is woken, so it looks only then.

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

    pub async fn get(&self) -> Result<u32, Interrupt> {
        if let Some(item) = self.take() {
            return Ok(item);
        }
        self.line.wait().await?;
        Ok(self.take().expect("the writer wakes a reader for an item"))
    }

    fn take(&self) -> Option<u32> {
        self.items.borrow_mut().pop_front()
    }
}
