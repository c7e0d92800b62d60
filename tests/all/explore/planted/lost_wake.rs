//! A mailbox. The bug: its reader looks, lets others run, and then waits without looking again, so
//! an item that is put in between wakes no task.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use kernel::Sim;
use traps::{Interrupt, WaitQueue, sleep, spawn, yield_now};

use super::{MS, Version};

#[derive(Default)]
struct Mailbox {
    items: RefCell<VecDeque<u32>>,
    line: WaitQueue,
}

impl Mailbox {
    fn put(&self, item: u32) {
        self.items.borrow_mut().push_back(item);
        self.line.wake(1);
    }

    fn take(&self) -> Option<u32> {
        self.items.borrow_mut().pop_front()
    }

    async fn get(&self, version: Version) -> Result<u32, Interrupt> {
        loop {
            if let Some(item) = self.take() {
                return Ok(item);
            }
            // More items may arrive at once; then there is no need to wait.
            yield_now().await?;
            if version == Version::Sound
                && let Some(item) = self.take()
            {
                return Ok(item);
            }
            self.line.wait().await?;
        }
    }
}

pub fn program(version: Version) -> (Sim, impl Future<Output = u32>) {
    let main = async move {
        let mailbox = Rc::new(Mailbox::default());
        let puts = mailbox.clone();
        let mut writer = spawn("writer", async move {
            for item in 1..=3 {
                sleep(5 * MS).await.unwrap();
                puts.put(item);
            }
        })
        .await;
        let mut sum = 0;
        for _ in 0..3 {
            sum += mailbox.get(version).await.unwrap();
        }
        writer.join().await.unwrap();
        sum
    };
    (Sim::new(), main)
}
