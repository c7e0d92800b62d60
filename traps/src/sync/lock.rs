//! Locks and permits: [`Mutex`], a value for one task at a time; [`Condition`], to wait for a
//! change of that value; [`RwLock`], a value for one writer or several readers; [`Semaphore`], a
//! number of permits.
//!
//! A semaphore is a queue that keeps permits. A mutex is a queue with one permit, the right to the
//! value. An `RwLock` has two queues. The first one, the *door*, has one permit. A reader takes the
//! permit, enters, and gives it back at once. A writer keeps the permit until it unlocks, and waits
//! in the second queue until the readers have left. So new readers queue up at the door after the
//! writer, and readers cannot starve it.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::rc::Rc;
use std::{fmt, mem};

use super::{Held, OnDrop};
use crate::core::table::{Site, TaskRef};
use crate::core::wait::unread;
use crate::interrupts::scope::shield_from;
use crate::{Error, Interrupt, WaitQueue};

/// Mutual exclusion between tasks: a value that one task has at a time, even while that task waits.
///
/// Fair: unlocking hands the mutex to the first waiter. Not reentrant: a task that locks its own
/// mutex again waits for itself.
///
/// ```no_run
/// use traps::sync::Mutex;
///
/// # async fn save(_: &[u32]) {}
/// # async fn example() -> Result<(), traps::Error> {
/// let accounts = Mutex::named("accounts", vec![0; 10]);
/// let mut guard = accounts.lock().await?;
/// guard[3] += 1;
/// save(&guard).await; // no other task can change them here
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Mutex<T> {
    queue: WaitQueue,
    value: RefCell<T>,
}

impl<T: Default> Default for Mutex<T> {
    /// Makes an unlocked mutex around the default value.
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> Mutex<T> {
    /// Makes an unlocked mutex around `value`.
    pub fn new(value: T) -> Mutex<T> {
        Mutex::named("", value)
    }

    /// Makes an unlocked mutex around `value`, with a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>, value: T) -> Mutex<T> {
        let queue = WaitQueue::with_permits(1).described("mutex", name);
        Mutex { queue, value: RefCell::new(value) }
    }

    /// Locks the mutex. *Blocks* while another guard exists.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait. The mutex is then not locked.
    #[track_caller]
    pub fn lock(&self) -> impl Future<Output = Result<MutexGuard<'_, T>, Interrupt>> {
        let held = Held::acquire(self.queue.clone(), Location::caller());
        async move { Ok(self.guard(held.await?)) }
    }

    /// Locks the mutex if it is free.
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        Held::try_acquire(self.queue.clone(), Location::caller()).map(|held| self.guard(held))
    }

    /// Returns whether the mutex is locked, or on its way to the next waiter.
    pub fn is_locked(&self) -> bool {
        self.queue.permits() == 0
    }

    /// Borrows the value mutably. The exclusive borrow proves that no guard exists.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Returns the value and drops the mutex.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    fn guard(&self, held: Held) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, locked: Some((self.value.borrow_mut(), held)) }
    }
}

/// A guard with access to the value of a [`Mutex`]. Dropping it unlocks the mutex.
#[must_use = "a guard that is dropped unlocks at once"]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// The borrowed value and the permit, or `None` during a wait for a condition. The borrow is
    /// dropped before the permit, because the next owner borrows the value.
    locked: Option<(RefMut<'a, T>, Held)>,
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

/// A condition variable: tasks wait on it until the value of a [`Mutex`] changes.
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
/// // A task that has work:
/// jobs.lock().await?.push_back(7);
/// more.notify_one();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Condition {
    queue: WaitQueue,
}

impl Default for Condition {
    fn default() -> Condition {
        Condition::new()
    }
}

impl Condition {
    /// Makes a condition without waiters.
    pub fn new() -> Condition {
        Condition::named("")
    }

    /// Makes a condition with a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>) -> Condition {
        Condition { queue: WaitQueue::new().described("condition", name) }
    }

    /// Unlocks the mutex, waits for a notification, and locks the mutex again. *Blocks*.
    ///
    /// The mutex is locked again however the wait ends. The wait for the lock is
    /// [shielded](fn@crate::shield): an interrupt during it is delivered at the next blocking trap.
    /// Another task can change the value between the notification and the lock, so wait in a loop:
    /// [`Condition::wait_for`].
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait. In this case no notification is taken, and the
    /// mutex is locked.
    ///
    /// # Panics
    ///
    /// If this future is dropped during the wait, the mutex is not locked, and a later use of the
    /// guard panics. If the future had a notification, the notification goes to the next waiter. If
    /// it had an interrupt, the interrupt is pending again.
    #[track_caller]
    pub fn wait<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
    ) -> impl Future<Output = Result<(), Interrupt>> {
        let mut has_waited = false;
        self.wait_for(guard, move |_| mem::replace(&mut has_waited, true))
    }

    /// Waits until `holds` returns `true` for the value. `holds` is called at once, and again after
    /// each notification. *Blocks* while it returns `false`; see [`Condition::wait`].
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait. The mutex is locked.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Condition::wait`].
    #[track_caller]
    pub fn wait_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut holds: impl FnMut(&T) -> bool,
    ) -> impl Future<Output = Result<(), Interrupt>> {
        let site = Location::caller();
        async move {
            while !holds(guard) {
                // No other task runs between this line and the next one, so no notification is
                // missed.
                guard.locked = None;
                let woken = self.queue.wait_from(site).await;
                // If this future is dropped before the mutex is locked, the notification passes on,
                // or the interrupt is pending again.
                let gives_back = || match &woken {
                    Ok(()) => self.queue.wake(1),
                    Err(interrupt) => unread(interrupt),
                };
                let mut if_dropped = OnDrop(Some(gives_back));
                let held = shield_from(site, Held::acquire(guard.mutex.queue.clone(), site)).await;
                let held = held.expect("a shield holds interrupts back");
                if_dropped.0 = None;
                drop(if_dropped);
                guard.locked = Some((guard.mutex.value.borrow_mut(), held));
                woken?;
            }
            Ok(())
        }
    }

    /// Notifies the first waiter.
    pub fn notify_one(&self) {
        self.notify(1);
    }

    /// Notifies the first `n` waiters, or all if there are fewer. Does not need the mutex. A
    /// notification without a waiter is lost. The log shows it: `notify condition NAME woke=0`.
    pub fn notify(&self, n: u64) {
        self.queue.wake(n);
    }

    /// Notifies all waiters.
    pub fn notify_all(&self) {
        self.notify(u64::MAX);
    }
}

/// A value that one task at a time can change, or any number of tasks can read.
///
/// Fair: readers and writers wait in one queue. Readers that follow each other hold the lock
/// together. A reader that arrives after a waiting writer waits, even while other tasks still read.
/// So a task that reads must not ask for a second guard: it could wait for a writer that waits for
/// it. The log shows a writer as the holder as soon as it is first in the queue.
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
    /// A queue with one permit: the right to enter. A reader gives it back as it enters; a writer
    /// keeps it.
    door: WaitQueue,
    /// The queue in which the writer that has the door's permit waits until the readers have left.
    empty: WaitQueue,
    readers: Cell<usize>,
    value: RefCell<T>,
}

impl<T: Default> Default for RwLock<T> {
    /// Makes an unlocked lock around the default value.
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T> RwLock<T> {
    /// Makes an unlocked lock around `value`.
    pub fn new(value: T) -> RwLock<T> {
        RwLock::named("", value)
    }

    /// Makes an unlocked lock around `value`, with a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>, value: T) -> RwLock<T> {
        let name = name.into();
        let queue = |permits| WaitQueue::with_permits(permits).described("rwlock", name.clone());
        RwLock {
            door: queue(1),
            empty: queue(0),
            readers: Cell::new(0),
            value: RefCell::new(value),
        }
    }

    /// Takes the lock for reading. *Blocks* while a task writes, and while another task waits in
    /// front of this one.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait. It is then not locked.
    #[track_caller]
    pub fn read(&self) -> impl Future<Output = Result<RwLockReadGuard<'_, T>, Interrupt>> {
        let site = Location::caller();
        let door = Held::acquire_briefly(self.door.clone(), site);
        async move {
            let _door = door.await?;
            Ok(self.add_reader(site))
        }
    }

    /// Takes the lock for writing. *Blocks* while a task reads or writes, and while another task
    /// waits in front of this one.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait. It is then not locked.
    #[track_caller]
    pub fn write(&self) -> impl Future<Output = Result<RwLockWriteGuard<'_, T>, Interrupt>> {
        let site = Location::caller();
        async move {
            let door = Held::acquire(self.door.clone(), site).await?;
            while self.readers.get() > 0 {
                self.empty.wait_from(site).await?;
            }
            Ok(RwLockWriteGuard { value: self.value.borrow_mut(), _door: door })
        }
    }

    /// Takes the lock for reading, if [`RwLock::read`] would not block.
    #[track_caller]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        let site = Location::caller();
        self.door.try_take_permit().then(|| {
            let guard = self.add_reader(site);
            self.door.give_permit();
            guard
        })
    }

    /// Takes the lock for writing, if [`RwLock::write`] would not block.
    #[track_caller]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        let door = Held::try_acquire(self.door.clone(), Location::caller())?;
        let is_free = self.readers.get() == 0;
        is_free.then(|| RwLockWriteGuard { value: self.value.borrow_mut(), _door: door })
    }

    /// Adds a reader, and returns its guard. The caller holds the permit of the door.
    fn add_reader(&self, site: Site) -> RwLockReadGuard<'_, T> {
        self.readers.set(self.readers.get() + 1);
        RwLockReadGuard { value: self.value.borrow(), task: self.empty.hold_from(site), lock: self }
    }
}

/// A guard with read access to the value of an [`RwLock`]. Dropping it unlocks the lock.
#[must_use = "a guard that is dropped unlocks at once"]
pub struct RwLockReadGuard<'a, T> {
    value: Ref<'a, T>,
    task: Option<TaskRef>,
    lock: &'a RwLock<T>,
}

impl<T> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        let RwLock { door, empty, readers, .. } = self.lock;
        empty.release(self.task);
        readers.set(readers.get() - 1);
        // The writer runs after this poll. By then the borrow of the value has ended, too.
        if readers.get() == 0 && door.permits() == 0 {
            empty.wake(1);
        }
    }
}

/// A guard with write access to the value of an [`RwLock`]. Dropping it unlocks the lock.
#[must_use = "a guard that is dropped unlocks at once"]
pub struct RwLockWriteGuard<'a, T> {
    // Dropped before the permit, because the next owner borrows the value.
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

/// A counter of permits, which tasks take and give back. Fair: a permit that is given back goes to
/// the first waiter.
///
/// Taking a free permit makes no trap. Clones share the permits. The log shows the tasks that took
/// permits. But a permit can since have moved to another task, so the report of a deadlock never
/// includes a wait for a semaphore.
///
/// ```no_run
/// use traps::sync::Semaphore;
///
/// # async fn example() -> Result<(), traps::Error> {
/// let few = Semaphore::new(3);
/// let permit = few.acquire().await?;
/// // Two more permits are left now.
/// drop(permit);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Semaphore {
    queue: WaitQueue,
    /// The number of permits that exist: free, held, or on their way to a waiter.
    all: Rc<Cell<u32>>,
    /// The largest number of permits that may exist.
    bound: u32,
}

impl Semaphore {
    /// Makes a semaphore with `permits` permits.
    pub fn new(permits: u32) -> Semaphore {
        Semaphore::named("", permits)
    }

    /// Makes a semaphore with `permits` permits, and a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>, permits: u32) -> Semaphore {
        let queue = WaitQueue::with_permits(permits).described("semaphore", name);
        Semaphore { queue, all: Rc::new(Cell::new(permits)), bound: u32::MAX }
    }

    /// Returns the semaphore with its present number of permits as a bound.
    /// [`Semaphore::add_permits`] can then only replace permits that were
    /// [forgotten](Permit::forget). Clones that were made before have no bound.
    ///
    /// ```
    /// use traps::{Error, sync::Semaphore};
    ///
    /// let few = Semaphore::named("few", 3).bounded();
    /// assert_eq!(few.add_permits(1), Err(Error::Full));
    /// ```
    pub fn bounded(self) -> Semaphore {
        Semaphore { bound: self.all.get(), ..self }
    }

    /// Takes a permit. *Blocks* while there is none.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait. No permit is then taken.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<Permit, Interrupt>> + use<> {
        let (held, all) = (Held::acquire(self.queue.clone(), Location::caller()), self.all.clone());
        async move { Ok(Permit { held: held.await?, all }) }
    }

    /// Takes a permit if one is free.
    #[track_caller]
    pub fn try_acquire(&self) -> Option<Permit> {
        Held::try_acquire(self.queue.clone(), Location::caller())
            .map(|held| Permit { held, all: self.all.clone() })
    }

    /// Returns the number of free permits.
    pub fn available_permits(&self) -> u32 {
        self.queue.permits()
    }

    /// Makes `n` new permits. Waiters get them first.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Full`] if there would be more permits than the bound, or more than
    /// `u32::MAX`. Held permits count. In this case no permit is made.
    pub fn add_permits(&self, n: u32) -> Result<(), Error> {
        let sum = self.all.get().checked_add(n).filter(|sum| *sum <= self.bound);
        self.all.set(sum.ok_or(Error::Full)?);
        self.queue.give_permits(n);
        Ok(())
    }
}

/// A permit of a [`Semaphore`]. Dropping it gives it back.
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back at once"]
pub struct Permit {
    held: Held,
    all: Rc<Cell<u32>>,
}

impl Permit {
    /// Drops the permit without giving it back, so the semaphore has one permit less.
    pub fn forget(self) {
        self.all.set(self.all.get() - 1);
        self.held.forget();
    }
}
