//! What tasks of one thread use to agree with each other: the scheduling queue, and a semaphore, a
//! mutex and an event that are built from it alone.

use std::cell::{Cell, RefCell, RefMut};
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use crate::core::interrupt::Interrupt;

mod queue;

pub use queue::{Wait, WaitQueue};

/// A number of permits. Fair: a permit that is given back goes to the first in line, in which a
/// wait stands once the poll that began it is over.
///
/// A free permit is taken without a trap. Clones are the same semaphore.
///
/// ```no_run
/// use traps::sync::Semaphore;
///
/// # async fn example() -> Result<(), traps::Error> {
/// let few = Semaphore::new(3);
/// let permit = few.acquire().await?;
/// // Two more may come here now.
/// drop(permit);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Semaphore(WaitQueue);

impl Semaphore {
    /// With so many permits.
    #[must_use]
    pub fn new(permits: u32) -> Semaphore {
        Semaphore(WaitQueue::with_permits(permits))
    }

    /// Takes a permit; blocks while there is none.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; no permit is then taken.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<Permit, Interrupt>> + use<> {
        let (line, wait) = (self.0.clone(), self.0.wait_for_permit());
        async move {
            if !line.try_take_permit() {
                wait.await?;
            }
            Ok(Permit(line))
        }
    }

    /// Takes a permit if one is free.
    #[must_use]
    pub fn try_acquire(&self) -> Option<Permit> {
        self.0.try_take_permit().then(|| Permit(self.0.clone()))
    }
}

/// A permit of a [`Semaphore`]; given back when dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back at once"]
pub struct Permit(WaitQueue);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.give_permit();
    }
}

/// Mutual exclusion between tasks: a [`Semaphore`] with one permit, and what it guards.
#[derive(Debug)]
pub struct Mutex<T> {
    permits: Semaphore,
    value: RefCell<T>,
}

impl<T: Default> Default for Mutex<T> {
    /// A free one around the default value.
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> Mutex<T> {
    /// A free one around `value`.
    #[must_use]
    pub fn new(value: T) -> Mutex<T> {
        Mutex { permits: Semaphore::new(1), value: RefCell::new(value) }
    }

    /// Locks it; blocks while another task has it.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; it is then not locked.
    #[track_caller]
    pub fn lock(&self) -> impl Future<Output = Result<MutexGuard<'_, T>, Interrupt>> {
        let permit = self.permits.acquire();
        async move { Ok(self.guard(permit.await?)) }
    }

    /// Locks it if it is free.
    #[must_use]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.permits.try_acquire().map(|permit| self.guard(permit))
    }

    fn guard(&self, permit: Permit) -> MutexGuard<'_, T> {
        MutexGuard { value: self.value.borrow_mut(), _permit: permit }
    }
}

/// The right to use what a [`Mutex`] guards; hands over when dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    // Dropped before the hand-over: the next owner borrows the value.
    value: RefMut<'a, T>,
    _permit: Permit,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
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
        self.line.wake(u64::MAX);
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
