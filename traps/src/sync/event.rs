//! Three small primitives: [`Event`], a flag; [`OnceCell`], a value that is made once; and
//! [`Barrier`], for tasks that continue together.

use std::borrow::Cow;
use std::cell::{self, Cell};
use std::panic::Location;

use super::{Held, OnDrop};
use crate::core::wait::give_back;
use crate::{Interrupt, WaitQueue};

/// A flag that tasks can wait for. It stays set until it is cleared.
///
/// ```
/// use std::{rc::Rc, time::Duration};
/// use traps::sync::Event;
/// use traps::{clock, sleep, spawn};
///
/// # testing::run(async {
/// let ready = Rc::new(Event::new());
/// let theirs = ready.clone();
/// spawn("starter", async move {
///     sleep(Duration::from_secs(1)).await?;
///     theirs.set();
///     Ok::<(), traps::Error>(())
/// })
/// .detached()
/// .await;
/// ready.wait().await.unwrap();
/// assert_eq!(clock().await.as_micros(), 1_000_000);
/// # });
/// ```
#[derive(Debug)]
pub struct Event {
    set: Cell<bool>,
    /// The number of calls of `set` so far.
    sets: Cell<u64>,
    queue: WaitQueue,
}

impl Default for Event {
    fn default() -> Event {
        Event::new()
    }
}

impl Event {
    /// Makes a flag that is not set.
    ///
    /// ```
    /// assert!(!traps::sync::Event::new().is_set());
    /// ```
    pub fn new() -> Event {
        Event::named("")
    }

    /// Makes a flag that is not set, with a name for the log.
    ///
    /// ```
    /// use traps::sync::Event;
    ///
    /// # let ran = testing::run(async {
    /// let ready = Event::named("ready");
    /// let set = async { ready.set() };
    /// traps::join(ready.wait(), set).await.0.unwrap(); // waits: the log has `event ready`
    /// # });
    /// # assert!(ran.trace.contains("event ready"), "{}", ran.trace);
    /// ```
    pub fn named(name: impl Into<Cow<'static, str>>) -> Event {
        let queue = WaitQueue::new().described("event", name);
        Event { set: Cell::new(false), sets: Cell::new(0), queue }
    }

    /// Sets the flag, and wakes all waiters in the order in which they arrived.
    ///
    /// ```
    /// let event = traps::sync::Event::new();
    /// event.set();
    /// assert!(event.is_set());
    /// ```
    pub fn set(&self) {
        self.set.set(true);
        self.sets.set(self.sets.get() + 1);
        self.queue.wake(u64::MAX);
    }

    /// Clears the flag.
    ///
    /// ```
    /// let event = traps::sync::Event::new();
    /// event.set();
    /// event.clear();
    /// assert!(!event.is_set());
    /// ```
    pub fn clear(&self) {
        self.set.set(false);
    }

    /// Returns whether the flag is set.
    ///
    /// ```
    /// assert!(!traps::sync::Event::new().is_set());
    /// ```
    pub fn is_set(&self) -> bool {
        self.set.get()
    }

    /// Waits until the flag is set, even if it is cleared before this task runs. *Blocks*, unless
    /// the flag is set.
    ///
    /// ```
    /// use std::rc::Rc;
    /// use traps::sync::Event;
    /// use traps::{spawn, yield_now};
    ///
    /// # testing::run(async {
    /// let event = Rc::new(Event::new());
    /// let theirs = event.clone();
    /// let mut waiter = spawn("waiter", async move { theirs.wait().await }).await;
    /// yield_now().await.unwrap();
    /// event.set();
    /// event.clear(); // too late to stop the waiter
    /// waiter.join().await.unwrap().unwrap();
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<(), Interrupt>> {
        let site = Location::caller();
        async move {
            let before = self.sets.get();
            // Check again after a wake-up. It can be for an earlier `set`: if a woken wait is
            // dropped, its wake-up passes to the next waiter, which may have arrived after a
            // `clear`.
            while !self.set.get() && self.sets.get() == before {
                self.queue.wait_from(site).await?;
            }
            Ok(())
        }
    }
}

/// A cell for a value that the first task to need the value makes. The other tasks wait for it.
///
/// ```
/// use std::time::Duration;
/// use traps::sync::OnceCell;
/// use traps::{Error, clock, join, sleep};
///
/// async fn connect() -> Result<u32, Error> {
///     sleep(Duration::from_secs(1)).await?;
///     Ok(7)
/// }
///
/// # testing::run(async {
/// let connection = OnceCell::new();
/// let get = || connection.get_or_try_init(connect);
/// let both = join(get(), get()).await;
/// assert_eq!(both, (Ok(&7), Ok(&7)));
/// assert_eq!(clock().await.as_micros(), 1_000_000); // they connected once
/// # });
/// ```
#[derive(Debug)]
pub struct OnceCell<T> {
    value: cell::OnceCell<T>,
    /// A queue with one permit: the right to make the value.
    queue: WaitQueue,
}

impl<T> Default for OnceCell<T> {
    fn default() -> OnceCell<T> {
        OnceCell::new()
    }
}

impl<T> OnceCell<T> {
    /// Makes a cell without a value.
    ///
    /// ```
    /// assert!(traps::sync::OnceCell::<u32>::new().get().is_none());
    /// ```
    pub fn new() -> OnceCell<T> {
        OnceCell::named("")
    }

    /// Makes a cell without a value, with a name for the log.
    ///
    /// ```
    /// use traps::sync::OnceCell;
    /// use traps::{join, yield_now};
    ///
    /// # let ran = testing::run(async {
    /// let cell = OnceCell::named("config");
    /// let make = async || yield_now().await.is_ok();
    /// // The second waits for the first: the log has `once_cell config`.
    /// join(cell.get_or_init(make), cell.get_or_init(make)).await;
    /// # });
    /// # assert!(ran.trace.contains("once_cell config"), "{}", ran.trace);
    /// ```
    pub fn named(name: impl Into<Cow<'static, str>>) -> OnceCell<T> {
        let queue = WaitQueue::with_permits(1).described("once_cell", name);
        OnceCell { value: cell::OnceCell::new(), queue }
    }

    /// Returns the value, if there is one.
    ///
    /// ```
    /// let cell = traps::sync::OnceCell::new();
    /// cell.set(7).unwrap();
    /// assert_eq!(cell.get(), Some(&7));
    /// ```
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Sets the value.
    ///
    /// ```
    /// let cell = traps::sync::OnceCell::new();
    /// assert_eq!(cell.set(7), Ok(()));
    /// assert_eq!(cell.set(8), Err(8));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns `value` if the cell has a value, or if a task is making one.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        match Held::try_acquire(self.queue.clone(), Location::caller()) {
            Some(_held) => self.value.set(value),
            None => Err(value),
        }
    }

    /// Returns the value, and lets `init` make it first if there is none. *Blocks* while another
    /// task makes the value, and while `init` blocks.
    ///
    /// ```
    /// use traps::sync::OnceCell;
    ///
    /// # testing::run(async {
    /// let cell = OnceCell::new();
    /// assert_eq!(cell.get_or_init(async || 7).await, Ok(&7));
    /// assert_eq!(cell.get_or_init(async || 8).await, Ok(&7)); // does not call this one
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait for another task. `init` is then not called.
    #[track_caller]
    pub fn get_or_init(
        &self,
        init: impl AsyncFnOnce() -> T,
    ) -> impl Future<Output = Result<&T, Interrupt>> {
        self.get_or_try_init(async || Ok(init().await))
    }

    /// Returns the value, and lets `init` make it first if there is none. If `init` fails or is
    /// dropped, the first waiting task makes the next attempt. *Blocks* while another task makes
    /// the value, and while `init` blocks. An `init` that asks for the value itself waits for
    /// itself.
    ///
    /// ```
    /// use traps::Error;
    /// use traps::sync::OnceCell;
    ///
    /// # testing::run(async {
    /// let cell = OnceCell::new();
    /// let failed = cell.get_or_try_init(async || Err(Error::Closed)).await;
    /// assert_eq!(failed, Err(Error::Closed));
    /// let made = cell.get_or_try_init(async || Ok::<_, Error>(7)).await;
    /// assert_eq!(made, Ok(&7));
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of `init`, or the interrupt that ended the wait for another task. In the
    /// second case, `init` is not called.
    #[track_caller]
    pub fn get_or_try_init<E: From<Interrupt>>(
        &self,
        init: impl AsyncFnOnce() -> Result<T, E>,
    ) -> impl Future<Output = Result<&T, E>> {
        let held = Held::acquire(self.queue.clone(), Location::caller());
        async {
            let _held = if self.get().is_none() { Some(held.await?) } else { None };
            // Another task may have made the value while this one waited for the permit.
            if let Some(value) = self.get() {
                return Ok(value);
            }
            let value = init().await?;
            Ok(self.value.get_or_init(|| value))
        }
    }
}

/// A meeting point for `n` tasks. Tasks wait until there are `n` of them; then all continue, and
/// the next round begins.
///
/// ```
/// use std::rc::Rc;
/// use traps::sync::Barrier;
/// use traps::{Error, TaskGroup};
///
/// # testing::run(async {
/// let all = Rc::new(Barrier::new(3));
/// let mut group = TaskGroup::new();
/// for name in ["one", "two", "three"] {
///     let all = all.clone();
///     group.spawn(name, async move { Ok::<_, Error>(all.wait().await?.is_leader()) }).await;
/// }
/// assert_eq!(group.join().await.unwrap(), [false, false, true]);
/// # });
/// ```
#[derive(Debug)]
pub struct Barrier {
    n: usize,
    /// The number of tasks that wait for the end of this round.
    arrived: Cell<usize>,
    /// The number of rounds that have ended.
    round: Cell<u64>,
    queue: WaitQueue,
}

impl Barrier {
    /// Makes a barrier for `n` tasks; 0 counts as 1.
    ///
    /// ```
    /// use traps::sync::Barrier;
    ///
    /// # testing::run(async {
    /// let alone = Barrier::new(1);
    /// assert!(alone.wait().await.unwrap().is_leader());
    /// # });
    /// ```
    pub fn new(n: usize) -> Barrier {
        Barrier::named("", n)
    }

    /// Makes a barrier for `n` tasks, with a name for the log.
    ///
    /// ```
    /// use traps::join;
    /// use traps::sync::Barrier;
    ///
    /// # let ran = testing::run(async {
    /// let both = Barrier::named("both", 2);
    /// join(both.wait(), both.wait()).await; // the log has `barrier both`
    /// # });
    /// # assert!(ran.trace.contains("barrier both"), "{}", ran.trace);
    /// ```
    pub fn named(name: impl Into<Cow<'static, str>>, n: usize) -> Barrier {
        let queue = WaitQueue::new().described("barrier", name);
        Barrier { n, arrived: Cell::new(0), round: Cell::new(0), queue }
    }

    /// Waits until `n` tasks are in this call. *Blocks*, unless this task is the last of them. The
    /// last task wakes the others in the order in which they arrived.
    ///
    /// ```
    /// use traps::sync::Barrier;
    /// use traps::{join, timeout_after};
    /// # use std::time::Duration;
    ///
    /// # testing::run(async {
    /// let both = Barrier::new(2);
    /// let alone = timeout_after(Duration::from_secs(1), both.wait()).await;
    /// assert!(alone.is_err());
    /// let (one, two) = join(both.wait(), both.wait()).await;
    /// assert!(one.is_ok() && two.is_ok());
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait. The task then no longer counts. If the round
    /// ended before the task read the interrupt, the call succeeds, and the next blocking trap
    /// delivers the interrupt.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<BarrierWaitResult, Interrupt>> {
        let site = Location::caller();
        async move {
            self.arrived.set(self.arrived.get() + 1);
            let round = self.round.get();
            if self.arrived.get() >= self.n {
                self.arrived.set(0);
                self.round.set(round + 1);
                self.queue.wake(u64::MAX);
                return Ok(BarrierWaitResult(true));
            }
            let counts = || self.round.get() == round;
            let leave = || self.arrived.set(self.arrived.get() - usize::from(counts()));
            let _leave = OnDrop(Some(leave));
            // A wake-up for an earlier round can still arrive, passed on by a woken wait that was
            // dropped.
            while counts() {
                match self.queue.wait_from(site).await {
                    Err(interrupt) if counts() => return Err(interrupt),
                    // The round ended after the interrupt was delivered and before this poll. The
                    // other tasks have counted this one, so the call must succeed.
                    Err(interrupt) => give_back(&interrupt),
                    Ok(()) => {}
                }
            }
            Ok(BarrierWaitResult(false))
        }
    }
}

/// The result of [`Barrier::wait`].
///
/// ```
/// use traps::sync::Barrier;
///
/// # testing::run(async {
/// let result = Barrier::new(1).wait().await.unwrap();
/// assert!(result.is_leader());
/// # });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Returns whether this task was the last to arrive. That is true for one task in each round.
    ///
    /// ```
    /// use traps::join;
    /// use traps::sync::Barrier;
    ///
    /// # testing::run(async {
    /// let both = Barrier::new(2);
    /// let (one, two) = join(both.wait(), both.wait()).await;
    /// assert_eq!((one.unwrap().is_leader(), two.unwrap().is_leader()), (false, true));
    /// # });
    /// ```
    pub fn is_leader(&self) -> bool {
        self.0
    }
}
