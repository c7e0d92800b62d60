//! A value that one writer or several readers have at a time.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use super::held::Held;
use crate::core::names::TaskRef;
use crate::{Interrupt, WaitQueue};

/// A value, and one task at a time that may change it, or any number that read it.
///
/// Fair: readers and writers stand in one line. Readers that follow each other are in together.
/// A reader that comes after a writer waits, even while others still read. So a task that reads
/// must not ask for a second guard: it may wait for a writer that waits for it. In the log a writer
/// holds the lock from when it is the first in line.
///
/// ```no_run
/// use traps::sync::RwLock;
///
/// # async fn example() -> Result<(), traps::Error> {
/// let routes = RwLock::named("routes", vec!["/"]);
/// println!("{} routes", routes.read().await?.len());
/// routes.write().await?.push("/about");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RwLock<T> {
    /// One permit: the right to enter. A reader passes it on as it enters, a writer keeps it.
    door: WaitQueue,
    /// Where the writer at the door waits until the readers have left.
    left: WaitQueue,
    readers: Cell<usize>,
    value: RefCell<T>,
}

impl<T: Default> Default for RwLock<T> {
    /// A free one around the default value.
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T> RwLock<T> {
    /// A free one around `value`.
    pub fn new(value: T) -> RwLock<T> {
        RwLock::named("", value)
    }

    /// A free one around `value`, with a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>, value: T) -> RwLock<T> {
        let name = name.into();
        let line = |permits| WaitQueue::with_permits(permits).described("rwlock", name.clone());
        RwLock { door: line(1), left: line(0), readers: Cell::new(0), value: RefCell::new(value) }
    }

    /// Locks it for reading. *Blocks* while a task writes, or waits before this one.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; it is then not locked.
    #[track_caller]
    pub fn read(&self) -> impl Future<Output = Result<RwLockReadGuard<'_, T>, Interrupt>> {
        let door = Held::take(self.door.clone(), Location::caller());
        async move {
            let _door = door.await?;
            Ok(self.enter())
        }
    }

    /// Locks it for writing. *Blocks* while a task reads or writes, or waits before this one.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; it is then not locked.
    #[track_caller]
    pub fn write(&self) -> impl Future<Output = Result<RwLockWriteGuard<'_, T>, Interrupt>> {
        let site = Location::caller();
        async move {
            let door = Held::take(self.door.clone(), site).await?;
            while self.readers.get() > 0 {
                self.left.wait_from(site).await?;
            }
            Ok(RwLockWriteGuard { value: self.value.borrow_mut(), _door: door })
        }
    }

    /// Locks it for reading, if [`RwLock::read`] would not block.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        Held::try_take(self.door.clone()).map(|_door| self.enter())
    }

    /// Locks it for writing, if [`RwLock::write`] would not block.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        let door = Held::try_take(self.door.clone())?;
        let is_free = self.readers.get() == 0;
        is_free.then(|| RwLockWriteGuard { value: self.value.borrow_mut(), _door: door })
    }

    /// At the open door.
    fn enter(&self) -> RwLockReadGuard<'_, T> {
        self.readers.set(self.readers.get() + 1);
        RwLockReadGuard { value: self.value.borrow(), task: self.left.hold(), lock: self }
    }
}

/// The right to read what a [`RwLock`] guards; unlocks it when dropped.
#[must_use = "a guard that is dropped unlocks at once"]
pub struct RwLockReadGuard<'a, T> {
    value: Ref<'a, T>,
    task: Option<TaskRef>,
    lock: &'a RwLock<T>,
}

impl<T> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        let RwLock { door, left, readers, .. } = self.lock;
        left.release(self.task);
        readers.set(readers.get() - 1);
        // The writer runs after this poll, when the borrow of the value is over too.
        if readers.get() == 0 && door.permits() == 0 {
            left.wake(1);
        }
    }
}

/// The right to change what a [`RwLock`] guards; unlocks it when dropped.
#[must_use = "a guard that is dropped unlocks at once"]
pub struct RwLockWriteGuard<'a, T> {
    // Dropped before the hand-over: the next owner borrows the value.
    value: RefMut<'a, T>,
    _door: Held,
}

impl<T: fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
