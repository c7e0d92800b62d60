//! Three small primitives: [`Event`], a flag; [`OnceCell`], a value that is made once; and
//! [`Barrier`], for tasks that continue together.

use std::borrow::Cow;
use std::cell::{self, Cell};
use std::panic::Location;

use super::{Held, OnDrop};
use crate::core::wait::unread;
use crate::{Interrupt, WaitQueue};

/// A flag that tasks can wait for. It stays set until it is cleared.
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
    pub fn new() -> Event {
        Event::named("")
    }

    /// Makes a flag that is not set, with a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>) -> Event {
        let queue = WaitQueue::new().described("event", name);
        Event { set: Cell::new(false), sets: Cell::new(0), queue }
    }

    /// Sets the flag, and wakes all waiters in the order in which they arrived.
    pub fn set(&self) {
        self.set.set(true);
        self.sets.set(self.sets.get() + 1);
        self.queue.wake(u64::MAX);
    }

    /// Clears the flag.
    pub fn clear(&self) {
        self.set.set(false);
    }

    /// Returns whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.set.get()
    }

    /// Waits until the flag is set, even if it is cleared before this task runs. *Blocks*, unless
    /// the flag is set.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<(), Interrupt>> {
        let site = Location::caller();
        async move {
            let before = self.sets.get();
            // A wake-up for an earlier `set` can still arrive, passed on by a woken wait that was
            // dropped.
            while !self.set.get() && self.sets.get() == before {
                self.queue.wait_from(site).await?;
            }
            Ok(())
        }
    }
}

/// A cell for a value that the first task to need the value makes. The other tasks wait for it.
///
/// ```no_run
/// use traps::sync::OnceCell;
///
/// # async fn connect() -> Result<u32, traps::Error> { Ok(7) }
/// # async fn example(pool: &OnceCell<u32>) -> Result<(), traps::Error> {
/// let pool = pool.get_or_try_init(async || connect().await).await?;
/// # drop(pool);
/// # Ok(())
/// # }
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
    pub fn new() -> OnceCell<T> {
        OnceCell::named("")
    }

    /// Makes a cell without a value, with a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>) -> OnceCell<T> {
        let queue = WaitQueue::with_permits(1).described("once_cell", name);
        OnceCell { value: cell::OnceCell::new(), queue }
    }

    /// Returns the value, if there is one.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Sets the value.
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
/// ```no_run
/// use traps::sync::Barrier;
///
/// # async fn measure() {}
/// # async fn example(all: &Barrier) -> Result<(), traps::Error> {
/// measure().await;
/// if all.wait().await?.is_leader() {
///     println!("all have measured");
/// }
/// # Ok(())
/// # }
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
    pub fn new(n: usize) -> Barrier {
        Barrier::named("", n)
    }

    /// Makes a barrier for `n` tasks, with a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>, n: usize) -> Barrier {
        let queue = WaitQueue::new().described("barrier", name);
        Barrier { n, arrived: Cell::new(0), round: Cell::new(0), queue }
    }

    /// Waits until `n` tasks are in this call. *Blocks*, unless this task is the last of them. The
    /// last task wakes the others in the order in which they arrived.
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
                    Err(interrupt) => unread(&interrupt),
                    Ok(()) => {}
                }
            }
            Ok(BarrierWaitResult(false))
        }
    }
}

/// The result of [`Barrier::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Returns whether this task was the last to arrive. That is true for one task in each round.
    pub fn is_leader(&self) -> bool {
        self.0
    }
}
