//! A value that one task has at a time.

use std::borrow::Cow;
use std::cell::{RefCell, RefMut};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use super::held::Held;
use crate::{Interrupt, WaitQueue};

/// Mutual exclusion between tasks: a value that one task at a time has, also while it waits.
///
/// Fair: who unlocks it hands it to the first in line. Not reentrant: a task that locks what it has
/// locked waits for itself.
///
/// ```no_run
/// use traps::sync::Mutex;
///
/// # async fn save(_: &[u32]) {}
/// # async fn example() -> Result<(), traps::Error> {
/// let accounts = Mutex::named("accounts", vec![0; 10]);
/// let mut guard = accounts.lock().await?;
/// guard[3] += 1;
/// save(&guard).await; // nobody else changes them meanwhile
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Mutex<T> {
    pub(super) line: WaitQueue,
    pub(super) value: RefCell<T>,
}

impl<T: Default> Default for Mutex<T> {
    /// A free one around the default value.
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> Mutex<T> {
    /// A free one around `value`.
    pub fn new(value: T) -> Mutex<T> {
        Mutex::named("", value)
    }

    /// A free one around `value`, with a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>, value: T) -> Mutex<T> {
        let line = WaitQueue::with_permits(1).described("mutex", name);
        Mutex { line, value: RefCell::new(value) }
    }

    /// Locks it. *Blocks* while another guard exists.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; it is then not locked.
    #[track_caller]
    pub fn lock(&self) -> impl Future<Output = Result<MutexGuard<'_, T>, Interrupt>> {
        let held = Held::take(self.line.clone(), Location::caller());
        async move { Ok(self.guard(held.await?)) }
    }

    /// Locks it if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        Held::try_take(self.line.clone()).map(|held| self.guard(held))
    }

    /// Whether it is locked, or on its way to the next who locks it.
    pub fn is_locked(&self) -> bool {
        self.line.permits() == 0
    }

    /// The value, which nobody else can have.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The value, without the mutex.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    fn guard(&self, held: Held) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, locked: Some((self.value.borrow_mut(), held)) }
    }
}

/// The right to use what a [`Mutex`] guards; unlocks it when dropped.
#[must_use = "a guard that is dropped unlocks at once"]
pub struct MutexGuard<'a, T> {
    pub(super) mutex: &'a Mutex<T>,
    /// `None` during a wait for a condition. The borrow ends before the hand-over: the next owner
    /// borrows the value.
    pub(super) locked: Option<(RefMut<'a, T>, Held)>,
}

const UNLOCKED: &str = "rule: a guard is not used after a wait for a condition was dropped midway";

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.locked.as_ref().expect(UNLOCKED).0
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.locked.as_mut().expect(UNLOCKED).0
    }
}
