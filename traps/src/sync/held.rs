//! A permit that was taken: what every lock is made of.

use crate::core::names::{Site, TaskRef};
use crate::{Interrupt, WaitQueue};

/// A permit of a line, and the task that took it, as the log names it. Given back when dropped.
#[derive(Debug)]
pub(super) struct Held {
    line: WaitQueue,
    task: Option<TaskRef>,
    /// It is given back.
    returns: bool,
}

impl Held {
    /// Takes a permit; blocks while there is none.
    pub(super) async fn take(line: WaitQueue, site: Site) -> Result<Held, Interrupt> {
        if !line.try_take_permit() {
            line.wait_for_permit_from(site).await?;
        }
        Ok(Held { task: line.hold(), line, returns: true })
    }

    /// Takes a permit if one is free.
    pub(super) fn try_take(line: WaitQueue) -> Option<Held> {
        line.try_take_permit().then(|| Held { task: line.hold(), line, returns: true })
    }

    /// Drops the permit without giving it back.
    pub(super) fn forget(mut self) {
        self.returns = false;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.line.release(self.task);
        if self.returns {
            self.line.give_permit();
        }
    }
}

/// Calls its function, if it still has one, when it is dropped.
pub(super) struct OnDrop<F: FnOnce()>(pub(super) Option<F>);

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}
