// says: line #0036: your task 4 `reader` panicked at src/given.rs:64: `get` gives 10, and the first item there is 40
// demand: Each item in its order.
//! The last item comes first if there are two.

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
            // If the next item arrives at once, there is no need to wait.
            yield_now().await?;
            if let Some(item) = self.take() {
                return Ok(item);
            }
            self.line.wait().await?;
        }
    }

    fn take(&self) -> Option<u32> {
        self.items.borrow_mut().pop_back()
    }
}
