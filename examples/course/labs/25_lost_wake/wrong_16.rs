// says: line #0056: `reader` is cancelled here and does not end; it waits at src/lab.rs:34, and `get` is to return the interrupt that ends this wait
// demand: A cancellation loses nothing.
//! A shield around the wait.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

use traps::{Interrupt, WaitQueue, shield};

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
        shield(async {
            loop {
                if let Some(item) = self.take() {
                    return Ok(item);
                }
                self.line.wait().await?;
            }
        })
        .await
    }

    fn take(&self) -> Option<u32> {
        self.items.borrow_mut().pop_front()
    }
}
