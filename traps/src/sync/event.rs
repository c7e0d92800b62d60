//! A flag.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::Location;

use crate::{Interrupt, WaitQueue};

/// A flag that tasks can wait for. Once set it stays set, until it is cleared.
#[derive(Debug)]
pub struct Event {
    set: Cell<bool>,
    /// How often it was.
    sets: Cell<u64>,
    line: WaitQueue,
}

impl Default for Event {
    fn default() -> Event {
        Event::new()
    }
}

impl Event {
    /// A flag that is not set.
    pub fn new() -> Event {
        Event::named("")
    }

    /// A flag that is not set, with a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>) -> Event {
        let line = WaitQueue::new().described("event", name);
        Event { set: Cell::new(false), sets: Cell::new(0), line }
    }

    /// Sets it and wakes all who wait, in the order in which they came.
    pub fn set(&self) {
        self.set.set(true);
        self.sets.set(self.sets.get() + 1);
        self.line.wake(u64::MAX);
    }

    /// Takes it back.
    pub fn clear(&self) {
        self.set.set(false);
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.set.get()
    }

    /// Waits until it is set, even if it is cleared before this task runs. *Blocks*, unless it is
    /// set.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<(), Interrupt>> {
        let site = Location::caller();
        async move {
            let before = self.sets.get();
            // A wake from before may come, passed on by a wait that was dropped unread.
            while !self.set.get() && self.sets.get() == before {
                self.line.wait_from(site).await?;
            }
            Ok(())
        }
    }
}
