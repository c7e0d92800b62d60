//! The yield stays, and a helper waits only if the mailbox is empty then.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

use traps::{Interrupt, WaitQueue, yield_now};

/// The seeds to explore.
pub fn seeds() -> RangeInclusive<u64> {
    1000..=1099
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
            yield_now().await?;
            self.until_filled().await?;
        }
    }

    async fn until_filled(&self) -> Result<(), Interrupt> {
        if self.items.borrow().is_empty() {
            self.line.wait().await?;
        }
        Ok(())
    }

    fn take(&self) -> Option<u32> {
        self.items.borrow_mut().pop_front()
    }
}
