//! A watch over heartbeats. The bug: each beat moves the deadline by a period instead of counting
//! from the beat, so beats that are each a little late come closer and closer to the deadline.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use kernel::Sim;
use traps::{Interrupt, Time, clock, sleep, spawn};

use super::{MS, Version};

const PERIOD: Duration = Duration::from_millis(10);
/// From the last beat to the deadline.
const PATIENCE: Duration = Duration::from_millis(50);

struct Watch {
    version: Version,
    last: Cell<Time>,
    deadline: Cell<Time>,
}

impl Watch {
    async fn beat(&self) {
        self.last.set(clock().await);
        self.deadline.set(match self.version {
            Version::Sound => self.last.get() + PATIENCE,
            Version::Broken => self.deadline.get() + PERIOD,
        });
    }

    /// Ends when the deadline has passed.
    async fn expired(&self) -> Result<(), Interrupt> {
        loop {
            let now = clock().await;
            if now >= self.deadline.get() {
                return Ok(());
            }
            sleep(self.deadline.get().since(now)).await?;
        }
    }
}

pub fn program(version: Version) -> (Sim, impl Future<Output = ()>) {
    let main = async move {
        let start = clock().await;
        let watch =
            Watch { version, last: Cell::new(start), deadline: Cell::new(start + PATIENCE) };
        let watch = Rc::new(watch);
        let watches = watch.clone();
        let watcher = spawn("watcher", async move {
            watches.expired().await?;
            let silence = clock().await.since(watches.last.get());
            assert!(silence >= PATIENCE, "expired after {silence:?}");
            Ok::<(), Interrupt>(())
        })
        .await;
        for _ in 0..10 {
            sleep(PERIOD).await.unwrap();
            watch.beat().await;
        }
        sleep(MS).await.unwrap();
        watcher.cancel_because("over").await.ok();
    };
    (Sim::new(), main)
}
