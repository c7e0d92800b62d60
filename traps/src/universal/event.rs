//! The universal event: a flag that tasks and threads can wait for.

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use super::queue::UniversalQueue;
use super::waiting::Waiting;
use crate::core::interrupt::Interrupt;
use crate::core::protocol::Act;
use crate::error::Error;

/// A flag that tasks and threads set and wait for. Once set it stays set, until it is cleared.
///
/// Clones are the same event; send one to a thread. Who waits when it is set is woken, in the order
/// in which they came, and stays woken though it is cleared at once. Whoever gives up leaves
/// nothing behind.
///
/// On the simulated machine a wait for a real thread is marked with
/// [`external`](WaitEvent::external).
///
/// ```no_run
/// # async fn example() -> Result<(), traps::Interrupt> {
/// use traps::universal::UniversalEvent;
///
/// let ready = UniversalEvent::new();
/// let theirs = ready.clone();
/// std::thread::spawn(move || theirs.set());
/// ready.wait().await
/// # }
/// ```
#[derive(Clone)]
pub struct UniversalEvent {
    /// Nothing is ever put into it: whoever gets from it waits until it is closed.
    queue: UniversalQueue<Infallible>,
}

impl Default for UniversalEvent {
    fn default() -> UniversalEvent {
        UniversalEvent { queue: UniversalQueue::bounded(1) }
    }
}

impl fmt::Debug for UniversalEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UniversalEvent").field("set", &self.is_set()).finish_non_exhaustive()
    }
}

impl UniversalEvent {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> UniversalEvent {
        UniversalEvent::default()
    }

    /// Sets it and wakes all who wait, in the order in which they came. From anywhere; never
    /// blocks.
    pub fn set(&self) {
        self.queue.close();
    }

    /// Takes it back. From anywhere; never blocks.
    pub fn clear(&self) {
        self.queue.reopen();
    }

    /// Whether it is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.queue.is_closed()
    }

    /// How many wait. For tests and reports: it may have changed meanwhile.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// Waits until it is set. *Blocks* the task unless it is.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait.
    #[track_caller]
    pub fn wait(&self) -> WaitEvent {
        self.queue.get_as(Act::Event, |_, ended| match ended {
            Err(Error::Interrupt(interrupt)) => Err(interrupt),
            _closed => Ok(()),
        })
    }

    /// Waits until it is set. Blocks this thread unless it is.
    ///
    /// # Panics
    ///
    /// Inside a task; and if it has to wait on a thread on which a kernel runs.
    pub fn wait_blocking(&self) {
        let Err(_closed) = self.queue.get_blocking();
    }

    /// The same, for no longer than `span`, in real time. Whether it was set.
    ///
    /// # Panics
    ///
    /// As [`UniversalEvent::wait_blocking`].
    pub fn wait_blocking_timeout(&self, span: Duration) -> bool {
        self.queue.get_blocking_timeout(span) == Err(Error::Closed)
    }
}

/// The future of [`UniversalEvent::wait`].
pub type WaitEvent = Waiting<Infallible, Result<(), Interrupt>>;
