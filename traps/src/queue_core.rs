//! The two ends of a scheduling queue, as the kernel and its tasks share them.

use std::cell::Cell;

/// A first-in, first-out list of waiting tickets, and permits that nobody waited for.
///
/// The kernel keeps the list; this is its two ends. Everything else goes through
/// [`WaitQueue`](crate::WaitQueue).
#[derive(Debug)]
pub struct QueueCore {
    /// First ticket's index, [`QueueCore::NONE`] if nobody waits.
    pub head: Cell<u32>,
    /// Last ticket's index.
    pub tail: Cell<u32>,
    /// How many wait.
    pub waiting: Cell<u32>,
    /// Permits kept.
    pub permits: Cell<u32>,
    /// Its number in the log; 0 until it is first used there.
    pub number: Cell<u64>,
    /// The kernel that numbered it; 0 for none.
    pub home: Cell<u32>,
}

impl QueueCore {
    /// No ticket.
    pub const NONE: u32 = u32::MAX;

    /// An empty list with so many permits.
    #[must_use]
    pub fn new(permits: u32) -> QueueCore {
        QueueCore {
            head: Cell::new(Self::NONE),
            tail: Cell::new(Self::NONE),
            waiting: Cell::new(0),
            permits: Cell::new(permits),
            number: Cell::new(0),
            home: Cell::new(0),
        }
    }

    /// Forgets who waits: their kernel is gone. Permits stay.
    pub fn reset(&self) {
        self.head.set(Self::NONE);
        self.tail.set(Self::NONE);
        self.waiting.set(0);
        self.home.set(0);
    }

    /// Keeps a permit for the next who comes.
    pub fn keep_permit(&self) {
        self.permits.set(self.permits.get().saturating_add(1));
    }

    pub(crate) fn epoch(&self) -> Option<u32> {
        (self.home.get() != 0).then(|| self.home.get())
    }
}
