// says: `put` has changed; it appends the item and wakes a task that waits, and only `get` is to be mended
// demand: `put` as it was.
//! The mailbox remembers the wake, so `put` is another one.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

use traps::Interrupt;
use traps::sync::Event;

/// The seeds to explore.
pub fn seeds() -> RangeInclusive<u64> {
    1..=200
}

#[derive(Default)]
pub struct Mailbox {
    items: RefCell<VecDeque<u32>>,
    filled: Event,
}

impl Mailbox {
    pub fn put(&self, item: u32) {
        self.items.borrow_mut().push_back(item);
        self.filled.set();
    }

    pub async fn get(&self) -> Result<u32, Interrupt> {
        loop {
            if let Some(item) = self.take() {
                return Ok(item);
            }
            self.filled.clear();
            self.filled.wait().await?;
        }
    }

    fn take(&self) -> Option<u32> {
        self.items.borrow_mut().pop_front()
    }
}
