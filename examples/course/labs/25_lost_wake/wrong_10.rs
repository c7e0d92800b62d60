// says: line #0030: your task 4 `reader` panicked at src/given.rs:64: `get` gives 1, and the first item there is 40
// demand: Each item in its order.
//! The items of the page, counted and not read.

use std::cell::{Cell, RefCell};
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
    got: Cell<u32>,
}

impl Mailbox {
    pub fn put(&self, item: u32) {
        self.items.borrow_mut().push_back(item);
        self.line.wake(1);
    }

    pub async fn get(&self) -> Result<u32, Interrupt> {
        while self.take().is_none() {
            self.line.wait().await?;
        }
        self.got.set(self.got.get() + 1);
        Ok(self.got.get())
    }

    fn take(&self) -> Option<u32> {
        self.items.borrow_mut().pop_front()
    }
}
