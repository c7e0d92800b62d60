//! What tasks of one thread use to agree with each other: the scheduling queue, and a lock and an
//! event that are built from it alone.

use std::cell::{Cell, RefCell, RefMut};
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use crate::interrupt::Interrupt;

mod queue;

pub use queue::{QueueCore, Wait, WaitQueue};

/// Mutual exclusion between tasks. Fair: a release hands over to the first in line, in which a
/// wait stands once the poll that began it is over.
///
/// A free lock is taken without a trap.
#[derive(Debug)]
pub struct Lock<T> {
    line: WaitQueue,
    value: RefCell<T>,
}

impl<T: Default> Default for Lock<T> {
    /// A free lock around the default value.
    fn default() -> Lock<T> {
        Lock::new(T::default())
    }
}

impl<T> Lock<T> {
    /// A free lock around `value`.
    #[must_use]
    pub fn new(value: T) -> Lock<T> {
        Lock { line: WaitQueue::with_permits(1), value: RefCell::new(value) }
    }

    /// Takes the lock; blocks while another task has it.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; the lock is then not taken.
    #[track_caller]
    pub fn lock(&self) -> impl Future<Output = Result<LockGuard<'_, T>, Interrupt>> {
        let wait = self.line.wait_for_permit();
        async move {
            if !self.line.try_take_permit() {
                wait.await?;
            }
            Ok(self.guard())
        }
    }

    /// Takes the lock if it is free.
    #[must_use]
    pub fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        self.line.try_take_permit().then(|| self.guard())
    }

    fn guard(&self) -> LockGuard<'_, T> {
        LockGuard { value: Some(self.value.borrow_mut()), line: &self.line }
    }
}

/// The right to use what a [`Lock`] guards; hands over when dropped.
#[derive(Debug)]
pub struct LockGuard<'a, T> {
    value: Option<RefMut<'a, T>>,
    line: &'a WaitQueue,
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value.as_ref().expect("a guard has its value until it is dropped")
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("a guard has its value until it is dropped")
    }
}

impl<T> Drop for LockGuard<'_, T> {
    fn drop(&mut self) {
        // Before the hand-over: the next owner borrows the value.
        self.value = None;
        self.line.give_permit();
    }
}

/// A flag that tasks can wait for. Once set it stays set, until it is cleared.
#[derive(Debug, Default)]
pub struct Event {
    set: Cell<bool>,
    /// How often it was.
    sets: Cell<u64>,
    line: WaitQueue,
}

impl Event {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Event {
        Event::default()
    }

    /// Sets it and wakes all who wait, in the order in which they came.
    pub fn set(&self) {
        self.set.set(true);
        self.sets.set(self.sets.get() + 1);
        self.line.wake_soon(u64::MAX);
    }

    /// Takes it back.
    pub fn clear(&self) {
        self.set.set(false);
    }

    /// Whether it is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.set.get()
    }

    /// Waits until it is set, be it cleared at once; returns without a trap if it is.
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
