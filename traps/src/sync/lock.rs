//! Locks and permits: [`Mutex`], a value for one task at a time; [`Condition`], to wait for a
//! change of that value; [`RwLock`], a value for one writer or several readers; [`Semaphore`], a
//! number of permits.
//!
//! A semaphore is a queue that keeps permits. A mutex is a queue with one permit, the right to the
//! value. An `RwLock` has two queues. The first one, the *door*, has one permit. A reader takes the
//! permit, counts itself as a reader, and gives the permit back at once. A writer keeps the permit
//! until it unlocks, and waits in the second queue until there are no readers. So new readers wait
//! at the door after the writer, and cannot starve it.
//!
//! For example, readers `a` and `b` have the lock, writer `w` arrives, and then reader `c`. `w`
//! takes the permit of the door and waits in the second queue. `c` waits at the door. When `b`, the
//! last reader, drops its guard, it wakes `w`. When `w` drops its guard, the permit goes to `c`.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::rc::Rc;
use std::{fmt, mem};

use super::{Held, OnDrop};
use crate::core::table::{Site, TaskRef};
use crate::core::wait::give_back;
use crate::interrupts::scope::shield_from;
use crate::{Error, Interrupt, WaitQueue};

/// Mutual exclusion between tasks: a value that one task has at a time, even while that task waits.
///
/// Fair: unlocking hands the mutex to the first waiter. Not reentrant: a task that locks its own
/// mutex again waits for itself.
///
/// ```
/// use std::rc::Rc;
/// use traps::sync::Mutex;
/// use traps::{Error, TaskGroup, yield_now};
///
/// # testing::run(async {
/// let total = Rc::new(Mutex::new(0));
/// let mut group = TaskGroup::new();
/// for n in 1..=10 {
///     let total = total.clone();
///     let add = async move {
///         let mut total = total.lock().await?;
///         let before = *total;
///         yield_now().await?; // other tasks run, but none can change the total
///         *total = before + n;
///         Ok::<(), Error>(())
///     };
///     group.spawn("adder", add).await;
/// }
/// group.join().await.unwrap();
/// assert_eq!(*total.lock().await.unwrap(), 55);
/// # });
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
    ///
    /// ```
    /// assert!(!traps::sync::Mutex::new(7).is_locked());
    /// ```
    pub fn new(value: T) -> Mutex<T> {
        Mutex::named("", value)
    }

    /// Makes an unlocked mutex around `value`, with a name for the log.
    ///
    /// ```
    /// use traps::sync::Mutex;
    ///
    /// # let ran = testing::run(async {
    /// let accounts = Mutex::named("accounts", vec![0; 10]);
    /// accounts.lock().await.unwrap()[3] += 1; // the log has `mutex accounts`
    /// # });
    /// # assert!(ran.trace.contains("mutex accounts"), "{}", ran.trace);
    /// ```
    pub fn named(name: impl Into<Cow<'static, str>>, value: T) -> Mutex<T> {
        let queue = WaitQueue::with_permits(1).described("mutex", name);
        Mutex { queue, value: RefCell::new(value) }
    }

    /// Locks the mutex. *Blocks* while another guard exists.
    ///
    /// ```
    /// use traps::sync::Mutex;
    ///
    /// # testing::run(async {
    /// let value = Mutex::new(7);
    /// *value.lock().await.unwrap() += 1; // unlocks at the end of the statement
    /// assert_eq!(value.into_inner(), 8);
    /// # });
    /// ```
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
    ///
    /// ```
    /// let value = traps::sync::Mutex::new(7);
    /// let guard = value.try_lock().unwrap();
    /// assert!(value.try_lock().is_none());
    /// drop(guard);
    /// assert!(value.try_lock().is_some());
    /// ```
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        Held::try_acquire(self.queue.clone(), Location::caller()).map(|held| self.guard(held))
    }

    /// Returns whether the mutex is locked, or on its way to the next waiter.
    ///
    /// ```
    /// let value = traps::sync::Mutex::new(7);
    /// let _guard = value.try_lock();
    /// assert!(value.is_locked());
    /// ```
    pub fn is_locked(&self) -> bool {
        self.queue.permits() == 0
    }

    /// Borrows the value mutably. The exclusive borrow proves that no guard exists.
    ///
    /// ```
    /// let mut value = traps::sync::Mutex::new(7);
    /// *value.get_mut() += 1;
    /// assert_eq!(value.into_inner(), 8);
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Returns the value and drops the mutex.
    ///
    /// ```
    /// let value = traps::sync::Mutex::new(vec![7]);
    /// assert_eq!(value.into_inner(), [7]);
    /// ```
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    fn guard(&self, held: Held) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, locked: Some((self.value.borrow_mut(), held)) }
    }
}

/// A guard with access to the value of a [`Mutex`]. Dropping it unlocks the mutex.
///
/// ```
/// use traps::sync::{Mutex, MutexGuard};
///
/// fn deposit(mut account: MutexGuard<'_, u64>) {
///     *account += 5;
/// }
///
/// let account = Mutex::new(7);
/// deposit(account.try_lock().unwrap());
/// assert!(!account.is_locked());
/// assert_eq!(account.into_inner(), 12);
/// ```
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
/// ```
/// use std::{collections::VecDeque, rc::Rc};
/// use traps::sync::{Condition, Mutex};
/// use traps::{Error, spawn};
///
/// # testing::run(async {
/// let shared = Rc::new((Mutex::new(VecDeque::new()), Condition::new()));
/// let theirs = shared.clone();
/// let mut worker = spawn("worker", async move {
///     let (jobs, more) = &*theirs;
///     let mut guard = jobs.lock().await?;
///     more.wait_for(&mut guard, |jobs| !jobs.is_empty()).await?;
///     Ok::<_, Error>(guard.pop_front())
/// })
/// .await;
///
/// let (jobs, more) = &*shared;
/// jobs.lock().await.unwrap().push_back(7);
/// more.notify_one();
/// assert_eq!(worker.join().await.unwrap(), Ok(Some(7)));
/// # });
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
    ///
    /// ```
    /// let condition = traps::sync::Condition::new();
    /// condition.notify_all(); // no task waits, so this has no effect
    /// ```
    pub fn new() -> Condition {
        Condition::named("")
    }

    /// Makes a condition with a name for the log.
    ///
    /// ```
    /// use std::time::Duration;
    /// use traps::sync::{Condition, Mutex};
    /// use traps::timeout_after;
    ///
    /// # let ran = testing::run(async {
    /// let (jobs, more) = (Mutex::new(0), Condition::named("more"));
    /// let mut guard = jobs.lock().await.unwrap();
    /// let wait = more.wait(&mut guard); // the log has `condition more`
    /// assert!(timeout_after(Duration::from_secs(1), wait).await.is_err());
    /// # });
    /// # assert!(ran.trace.contains("condition more"), "{}", ran.trace);
    /// ```
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
    /// ```
    /// use traps::join;
    /// use traps::sync::{Condition, Mutex};
    ///
    /// # testing::run(async {
    /// let (value, changed) = (Mutex::new(0), Condition::new());
    /// let reader = async {
    ///     let mut guard = value.lock().await.unwrap();
    ///     while *guard < 7 {
    ///         changed.wait(&mut guard).await.unwrap();
    ///     }
    ///     *guard
    /// };
    /// let writer = async {
    ///     *value.lock().await.unwrap() = 7;
    ///     changed.notify_all();
    /// };
    /// assert_eq!(join(reader, writer).await.0, 7);
    /// # });
    /// ```
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
    /// ```
    /// use traps::join;
    /// use traps::sync::{Condition, Mutex};
    ///
    /// # testing::run(async {
    /// let (value, changed) = (Mutex::new(0), Condition::new());
    /// let reader = async {
    ///     let mut guard = value.lock().await.unwrap();
    ///     changed.wait_for(&mut guard, |value| *value >= 7).await.unwrap();
    ///     *guard
    /// };
    /// let writer = async {
    ///     *value.lock().await.unwrap() = 7;
    ///     changed.notify_all();
    /// };
    /// assert_eq!(join(reader, writer).await.0, 7);
    /// # });
    /// ```
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
                // Unlock first. No other task runs between this line and the next one, so none can
                // change the value and notify before this task is in the queue.
                guard.locked = None;
                let woken = self.queue.wait_from(site).await;
                // If this future is dropped before the mutex is locked, the notification passes on,
                // or the interrupt is pending again.
                let gives_back = || match &woken {
                    Ok(()) => self.queue.wake(1),
                    Err(interrupt) => give_back(interrupt),
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
    ///
    /// ```
    /// use std::rc::Rc;
    /// use traps::sync::{Condition, Mutex};
    /// use traps::{Error, spawn, yield_now};
    ///
    /// # testing::run(async {
    /// let shared = Rc::new((Mutex::new(()), Condition::new()));
    /// let mut waiters = Vec::new();
    /// for name in ["one", "two"] {
    ///     let theirs = shared.clone();
    ///     let wait = async move { theirs.1.wait(&mut theirs.0.lock().await?).await };
    ///     waiters.push(spawn(name, wait).await);
    /// }
    /// yield_now().await.unwrap();
    /// shared.1.notify_one();
    /// waiters[0].join().await.unwrap().unwrap();
    /// waiters[1].cancel().await.unwrap();
    /// assert!(waiters[1].join().await.unwrap().is_err()); // it was still waiting
    /// # });
    /// ```
    pub fn notify_one(&self) {
        self.notify(1);
    }

    /// Notifies the first `n` waiters, or all if there are fewer. Does not need the mutex. A
    /// notification without a waiter is lost. The log shows it: `notify condition NAME woke=0`.
    ///
    /// ```
    /// use traps::join;
    /// use traps::sync::{Condition, Mutex};
    ///
    /// # testing::run(async {
    /// let (value, changed) = (Mutex::new(()), Condition::new());
    /// let waiter = || async { changed.wait(&mut value.lock().await.unwrap()).await };
    /// let both = join(waiter(), waiter());
    /// let (woken, ()) = join(both, async { changed.notify(2) }).await;
    /// assert_eq!(woken, (Ok(()), Ok(())));
    /// # });
    /// ```
    pub fn notify(&self, n: u64) {
        self.queue.wake(n);
    }

    /// Notifies all waiters.
    ///
    /// ```
    /// use traps::join;
    /// use traps::sync::{Condition, Mutex};
    ///
    /// # testing::run(async {
    /// let (value, changed) = (Mutex::new(()), Condition::new());
    /// let waiter = async { changed.wait(&mut value.lock().await.unwrap()).await };
    /// let (woken, ()) = join(waiter, async { changed.notify_all() }).await;
    /// assert_eq!(woken, Ok(()));
    /// # });
    /// ```
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
/// ```
/// use traps::join;
/// use traps::sync::RwLock;
///
/// # testing::run(async {
/// let routes = RwLock::named("routes", vec!["/"]);
/// let (one, two) = join(routes.read(), routes.read()).await;
/// assert_eq!((one.unwrap().len(), two.unwrap().len()), (1, 1)); // at the same time
/// routes.write().await.unwrap().push("/about");
/// assert_eq!(routes.read().await.unwrap().len(), 2);
/// # });
/// ```
#[derive(Debug)]
pub struct RwLock<T> {
    /// A queue with one permit. A reader gives it back once it is counted; a writer keeps it.
    door: WaitQueue,
    /// The queue in which the writer that has the door's permit waits until there are no readers.
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
    ///
    /// ```
    /// let lock = traps::sync::RwLock::new(7);
    /// assert_eq!(*lock.try_read().unwrap(), 7);
    /// ```
    pub fn new(value: T) -> RwLock<T> {
        RwLock::named("", value)
    }

    /// Makes an unlocked lock around `value`, with a name for the log.
    ///
    /// ```
    /// use traps::sync::RwLock;
    ///
    /// # let ran = testing::run(async {
    /// let routes = RwLock::named("routes", vec!["/"]);
    /// routes.write().await.unwrap().push("/about"); // the log has `rwlock routes`
    /// # });
    /// # assert!(ran.trace.contains("rwlock routes"), "{}", ran.trace);
    /// ```
    pub fn named(name: impl Into<Cow<'static, str>>, value: T) -> RwLock<T> {
        let name = name.into();
        let make = |permits| WaitQueue::with_permits(permits).described("rwlock", name.clone());
        RwLock { door: make(1), empty: make(0), readers: Cell::new(0), value: RefCell::new(value) }
    }

    /// Takes the lock for reading. *Blocks* while a task writes, and while another task waits
    /// before this one.
    ///
    /// ```
    /// use traps::sync::RwLock;
    ///
    /// # testing::run(async {
    /// let lock = RwLock::new(7);
    /// let one = lock.read().await.unwrap();
    /// let two = lock.read().await.unwrap(); // no writer waits in between
    /// assert_eq!(*one + *two, 14);
    /// # });
    /// ```
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
    /// waits before this one.
    ///
    /// ```
    /// use traps::sync::RwLock;
    ///
    /// # testing::run(async {
    /// let lock = RwLock::new(7);
    /// *lock.write().await.unwrap() += 1;
    /// assert_eq!(*lock.read().await.unwrap(), 8);
    /// # });
    /// ```
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
    ///
    /// ```
    /// let lock = traps::sync::RwLock::new(7);
    /// let _writer = lock.try_write().unwrap();
    /// assert!(lock.try_read().is_none());
    /// ```
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
    ///
    /// ```
    /// let lock = traps::sync::RwLock::new(7);
    /// let _reader = lock.try_read().unwrap();
    /// assert!(lock.try_write().is_none());
    /// ```
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
///
/// ```
/// use traps::sync::{RwLock, RwLockReadGuard};
///
/// fn longest<'a>(words: &RwLockReadGuard<'a, Vec<&'static str>>) -> usize {
///     words.iter().map(|word| word.len()).max().unwrap_or(0)
/// }
///
/// let words = RwLock::new(vec!["trap", "gate", "kernel"]);
/// assert_eq!(longest(&words.try_read().unwrap()), 6);
/// ```
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
///
/// ```
/// use traps::sync::{RwLock, RwLockWriteGuard};
///
/// fn clear(mut words: RwLockWriteGuard<'_, Vec<&'static str>>) {
///     words.clear();
/// }
///
/// let words = RwLock::new(vec!["trap", "gate"]);
/// clear(words.try_write().unwrap());
/// assert!(words.try_read().unwrap().is_empty());
/// ```
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
/// ```
/// use traps::sync::Semaphore;
/// use traps::{Error, TaskGroup, clock, sleep};
/// # use std::time::Duration;
///
/// # testing::run(async {
/// let few = Semaphore::new(3);
/// let mut group = TaskGroup::new();
/// for _ in 0..6 {
///     let few = few.clone();
///     let work = async move {
///         let _permit = few.acquire().await?;
///         sleep(Duration::from_secs(1)).await?;
///         Ok::<(), Error>(())
///     };
///     group.spawn("worker", work).await;
/// }
/// group.join().await.unwrap();
/// assert_eq!(clock().await.as_micros(), 2_000_000); // three at a time
/// # });
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
    ///
    /// ```
    /// let few = traps::sync::Semaphore::new(3);
    /// assert_eq!(few.available_permits(), 3);
    /// ```
    pub fn new(permits: u32) -> Semaphore {
        Semaphore::named("", permits)
    }

    /// Makes a semaphore with `permits` permits, and a name for the log.
    ///
    /// ```
    /// use traps::sync::Semaphore;
    ///
    /// # let ran = testing::run(async {
    /// let few = Semaphore::named("few", 3);
    /// drop(few.acquire().await.unwrap()); // the log has `semaphore few`
    /// # });
    /// # assert!(ran.trace.contains("semaphore few"), "{}", ran.trace);
    /// ```
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
    /// ```
    /// use traps::sync::Semaphore;
    ///
    /// # testing::run(async {
    /// let few = Semaphore::new(3);
    /// let permit = few.acquire().await.unwrap();
    /// assert_eq!(few.available_permits(), 2);
    /// drop(permit);
    /// assert_eq!(few.available_permits(), 3);
    /// # });
    /// ```
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
    ///
    /// ```
    /// let one = traps::sync::Semaphore::new(1);
    /// let _permit = one.try_acquire().unwrap();
    /// assert!(one.try_acquire().is_none());
    /// ```
    #[track_caller]
    pub fn try_acquire(&self) -> Option<Permit> {
        Held::try_acquire(self.queue.clone(), Location::caller())
            .map(|held| Permit { held, all: self.all.clone() })
    }

    /// Returns the number of free permits.
    ///
    /// ```
    /// let few = traps::sync::Semaphore::new(3);
    /// let _permit = few.try_acquire();
    /// assert_eq!(few.available_permits(), 2);
    /// ```
    pub fn available_permits(&self) -> u32 {
        self.queue.permits()
    }

    /// Makes `n` new permits. Waiters get them first.
    ///
    /// ```
    /// let few = traps::sync::Semaphore::new(3);
    /// few.add_permits(2).unwrap();
    /// assert_eq!(few.available_permits(), 5);
    /// ```
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
///
/// ```
/// use traps::sync::{Permit, Semaphore};
///
/// struct Connection {
///     _permit: Permit, // given back when the connection is dropped
/// }
///
/// let few = Semaphore::new(1);
/// let connection = Connection { _permit: few.try_acquire().unwrap() };
/// assert!(few.try_acquire().is_none());
/// drop(connection);
/// assert!(few.try_acquire().is_some());
/// ```
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back at once"]
pub struct Permit {
    held: Held,
    all: Rc<Cell<u32>>,
}

impl Permit {
    /// Drops the permit without giving it back, so the semaphore has one permit less.
    ///
    /// ```
    /// let few = traps::sync::Semaphore::new(3);
    /// few.try_acquire().unwrap().forget();
    /// assert_eq!(few.available_permits(), 2); // for good
    /// ```
    pub fn forget(self) {
        self.all.set(self.all.get() - 1);
        self.held.forget();
    }
}
