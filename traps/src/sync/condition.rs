//! A change of what a mutex guards.

use std::borrow::Cow;
use std::panic::Location;

use super::held::{Held, OnDrop};
use super::mutex::MutexGuard;
use crate::core::filing::unread;
use crate::core::scope::shield_from;
use crate::{Interrupt, WaitQueue};

/// A condition variable: where tasks wait for a change of what a [`Mutex`](crate::sync::Mutex)
/// guards.
///
/// ```no_run
/// use std::collections::VecDeque;
/// use traps::sync::{Condition, Mutex};
///
/// # async fn example() -> Result<(), traps::Error> {
/// let (jobs, more) = (Mutex::new(VecDeque::from([1])), Condition::new());
/// // A worker:
/// let mut guard = jobs.lock().await?;
/// more.wait_for(&mut guard, |jobs| !jobs.is_empty()).await?;
/// let job = guard.pop_front();
/// # drop((job, guard));
/// // Who has work:
/// jobs.lock().await?.push_back(7);
/// more.notify_one();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Condition {
    line: WaitQueue,
}

impl Default for Condition {
    fn default() -> Condition {
        Condition::new()
    }
}

impl Condition {
    /// One that nobody waits for.
    pub fn new() -> Condition {
        Condition::named("")
    }

    /// One with a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>) -> Condition {
        Condition { line: WaitQueue::new().described("condition", name) }
    }

    /// Unlocks the mutex, waits for a notification, and locks the mutex again. *Blocks*.
    ///
    /// The mutex is locked again however the wait ends: the second wait is
    /// [shielded](fn@crate::shield), and an interrupt that comes during it is delivered at the next
    /// trap that blocks. Another task may have changed the value in between, so a task waits in a
    /// loop: [`Condition::wait_for`].
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; no notification is then taken, and the mutex is locked.
    ///
    /// # Panics
    ///
    /// If this future is dropped midway, a later use of the guard panics: the mutex is not locked.
    /// A notification that it had is for the next in line, and an interrupt is pending again.
    #[track_caller]
    pub fn wait<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
    ) -> impl Future<Output = Result<(), Interrupt>> {
        let mut has_waited = false;
        self.wait_for(guard, move |_| std::mem::replace(&mut has_waited, true))
    }

    /// Waits until `holds` is true of the value; it is asked first, and after each notification.
    /// *Blocks* while it is not; see [`Condition::wait`].
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; the mutex is locked.
    ///
    /// # Panics
    ///
    /// As for [`Condition::wait`].
    #[track_caller]
    pub fn wait_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut holds: impl FnMut(&T) -> bool,
    ) -> impl Future<Output = Result<(), Interrupt>> {
        let site = Location::caller();
        async move {
            while !holds(guard) {
                // No other task runs between the two: no notification is missed.
                guard.locked = None;
                let woken = self.line.wait_from(site).await;
                // If this future is dropped before the mutex is locked, the notification passes on,
                // or the interrupt is pending again.
                let gives_back = || match &woken {
                    Ok(()) => self.line.wake(1),
                    Err(interrupt) => unread(interrupt),
                };
                let mut if_dropped = OnDrop(Some(gives_back));
                let held = shield_from(site, Held::take(guard.mutex.line.clone(), site)).await;
                let held = held.expect("a shield holds interrupts back");
                if_dropped.0 = None;
                drop(if_dropped);
                guard.locked = Some((guard.mutex.value.borrow_mut(), held));
                woken?;
            }
            Ok(())
        }
    }

    /// Notifies the first in line.
    pub fn notify_one(&self) {
        self.notify(1);
    }

    /// Notifies the first `n` in line, or all if they are fewer. Does not need the mutex. Is not
    /// kept for who comes later.
    pub fn notify(&self, n: u64) {
        self.line.wake(n);
    }

    /// Notifies all who wait.
    pub fn notify_all(&self) {
        self.notify(u64::MAX);
    }
}
