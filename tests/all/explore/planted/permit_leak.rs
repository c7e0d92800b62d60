//! A lock that is handed to the first waiter, and counts its waiters. The bug: a cancelled wait
//! stays in the count, and then the lock is handed to no task but is not free either.

use std::cell::Cell;
use std::rc::Rc;

use kernel::Sim;
use traps::{Interrupt, WaitQueue, sleep, spawn};

use super::{MS, Version};

struct Lock {
    version: Version,
    line: WaitQueue,
    is_free: Cell<bool>,
    waiting: Cell<u32>,
}

struct Guard<'l>(&'l Lock);

impl Lock {
    fn new(version: Version) -> Lock {
        let line = WaitQueue::with_permits(u32::from(version == Version::Sound));
        Lock { version, line, is_free: Cell::new(true), waiting: Cell::new(0) }
    }

    async fn lock(&self) -> Result<Guard<'_>, Interrupt> {
        match self.version {
            Version::Sound => self.line.wait_for_permit().await?,
            Version::Broken if self.is_free.replace(false) => {}
            Version::Broken => {
                self.waiting.set(self.waiting.get() + 1);
                self.line.wait().await?;
                self.waiting.set(self.waiting.get() - 1);
            }
        }
        Ok(Guard(self))
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let Lock { version, line, is_free, waiting } = self.0;
        match version {
            Version::Sound => line.give_permit(),
            Version::Broken if waiting.get() > 0 => line.wake(1),
            Version::Broken => is_free.set(true),
        }
    }
}

pub fn program(version: Version) -> (Sim, impl Future<Output = ()>) {
    let main = async move {
        let lock = Rc::new(Lock::new(version));
        let hold = |lock: Rc<Lock>| async move {
            let _guard = lock.lock().await?;
            sleep(10 * MS).await
        };
        let mut first = spawn("first", hold(lock.clone())).await;
        let second = spawn("second", hold(lock.clone())).await;
        sleep(15 * MS).await.unwrap();
        second.cancel_because("late").await.ok();
        first.join().await.unwrap().unwrap();
        let _guard = lock.lock().await.unwrap();
    };
    (Sim::new(), main)
}
