//! Synchronization between the tasks of one thread: the wait queue, and the primitives that are
//! built from it alone.
//!
//! | type | for |
//! |---|---|
//! | [`WaitQueue`] | new primitives |
//! | [`Mutex`], [`RwLock`] | a value for one task, or for one writer or several readers |
//! | [`Semaphore`] | a number of tasks at a time |
//! | [`Event`] | a flag |
//! | [`Condition`] | a change of the value in a [`Mutex`] |
//! | [`Barrier`] | tasks that continue together |
//! | [`OnceCell`] | a value that is made once |
//!
//! All of them are fair: waits are served in the order of arrival. A lock or permit that becomes
//! free is handed to the first waiter, and no other task can take it on the way. If that wait is
//! interrupted or dropped, the lock or permit goes to the next waiter. A wait enters the queue only
//! at the end of the poll that began it. Until then, a `try_` call can take a lock or permit that
//! becomes free.
//!
//! Taking a free lock or permit makes no trap. Guards and permits give back what they hold when
//! they are dropped. Each primitive can have a name for the log: [`Mutex::named`].

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::core::gate;
use crate::core::protocol::{Note, PermitEvent, Post, Reply, Trap};
use crate::core::table::{Primitive, Queue, Site, TaskRef};
use crate::core::wait::Call;
use crate::interrupts::interrupt::Interrupt;
use crate::verbs::HOLDERS;

pub use event::{Barrier, BarrierWaitResult, Event, OnceCell};
pub use lock::{
    Condition, Mutex, MutexGuard, Permit, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore,
};

mod event;
mod lock;

/// A first-in, first-out queue of waiting tasks, from which all primitives between tasks are built.
///
/// A queue can keep *permits*. A permit is the right to something that the primitive hands out: a
/// lock, room for an item. A wake-up tells a waiter only to check its condition again.
///
/// Clones share one queue; a clone costs one reference count. The queue belongs to one thread.
///
/// ```
/// use std::{cell::Cell, rc::Rc};
/// use traps::{Interrupt, WaitQueue, spawn};
///
/// /// A gate: tasks pass once it is open.
/// #[derive(Default)]
/// struct Gate {
///     is_open: Cell<bool>,
///     waiters: WaitQueue,
/// }
///
/// impl Gate {
///     async fn pass(&self) -> Result<(), Interrupt> {
///         while !self.is_open.get() {
///             self.waiters.wait().await?;
///         }
///         Ok(())
///     }
/// }
///
/// # testing::run(async {
/// let gate = Rc::new(Gate::default());
/// let theirs = gate.clone();
/// let mut task = spawn("task", async move { theirs.pass().await }).await;
/// gate.is_open.set(true);
/// gate.waiters.wake(u64::MAX);
/// task.join().await.unwrap().unwrap();
/// # });
/// ```
#[derive(Clone, Default)]
pub struct WaitQueue(Rc<Queue>);

impl fmt::Debug for WaitQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.primitive.get().map(|it| &it.name);
        f.debug_struct("WaitQueue").field("name", &name).field("waiting", &self.waiting()).finish()
    }
}

impl WaitQueue {
    /// Makes an empty queue without permits.
    ///
    /// ```
    /// assert_eq!(traps::WaitQueue::new().waiting(), 0);
    /// ```
    pub fn new() -> WaitQueue {
        WaitQueue::with_permits(0)
    }

    /// Makes an empty queue with permits for [`WaitQueue::try_take_permit`]. A queue keeps at most
    /// `u32::MAX` permits.
    ///
    /// ```
    /// let queue = traps::WaitQueue::with_permits(1);
    /// assert!(queue.try_take_permit());
    /// assert!(!queue.try_take_permit());
    /// ```
    pub fn with_permits(permits: u32) -> WaitQueue {
        WaitQueue(Rc::new(Queue { permits: Cell::new(permits), ..Queue::default() }))
    }

    /// Describes the queue for the log and the table of tasks, which show both arguments: the kind
    /// of primitive in one word, such as `mutex`, and its name, which can be empty. Describe a
    /// queue once, before tasks wait in it.
    ///
    /// ```
    /// use traps::{WaitQueue, spawn};
    ///
    /// # let ran = testing::run(async {
    /// let queue = WaitQueue::new().described("gate", "north");
    /// let theirs = queue.clone();
    /// let mut task = spawn("task", async move { theirs.wait().await }).await;
    /// traps::yield_now().await.unwrap(); // the task waits: the log has `gate north`
    /// queue.wake(1);
    /// task.join().await.unwrap().unwrap();
    /// # });
    /// # assert!(ran.trace.contains("gate north"), "{}", ran.trace);
    /// ```
    pub fn described(self, kind: &'static str, name: impl Into<Cow<'static, str>>) -> WaitQueue {
        let primitive = Primitive { kind, name: name.into(), holders: RefCell::default() };
        let _ = self.0.primitive.set(Box::new(primitive));
        self
    }

    /// Records that the running task holds the lock or permit that the waiters want, for the log.
    /// Does so only in a [described](WaitQueue::described) queue, and for at most 64 tasks. Returns
    /// the argument for [`WaitQueue::release`].
    ///
    /// ```
    /// use traps::WaitQueue;
    ///
    /// # let ran = testing::run(async {
    /// let queue = WaitQueue::with_permits(1).described("lock", "mine");
    /// assert!(queue.try_take_permit());
    /// let holder = queue.hold(); // in a deadlock, the report names this task
    /// queue.release(holder);
    /// queue.give_permit();
    /// # });
    /// # assert!(ran.trace.contains("lock mine"), "{}", ran.trace);
    /// ```
    #[track_caller]
    pub fn hold(&self) -> Option<TaskRef> {
        self.hold_from(Location::caller())
    }

    /// Records the holder like [`WaitQueue::hold`], for a wrapper that passes its caller's
    /// location.
    ///
    /// ```
    /// use std::panic::Location;
    /// use traps::WaitQueue;
    ///
    /// /// Takes a permit. The log shows the line that calls this.
    /// #[track_caller]
    /// fn try_lock(queue: &WaitQueue) -> bool {
    ///     let site = Location::caller();
    ///     queue.try_take_permit() && queue.hold_from(site).is_some()
    /// }
    ///
    /// # testing::run(async {
    /// assert!(try_lock(&WaitQueue::with_permits(1).described("lock", "")));
    /// # });
    /// ```
    pub fn hold_from(&self, site: Site) -> Option<TaskRef> {
        let task = gate::task()?;
        let primitive = self.0.primitive.get()?;
        let mut holders = primitive.holders.borrow_mut();
        let is_noted = holders.len() < HOLDERS;
        is_noted.then(|| holders.push(task))?;
        self.note(primitive, PermitEvent::Taken(site));
        Some(task)
    }

    /// Undoes a [`WaitQueue::hold`]. Any task can call this, and a `Drop` can, too.
    ///
    /// ```
    /// use traps::WaitQueue;
    ///
    /// # testing::run(async {
    /// let queue = WaitQueue::with_permits(1).described("lock", "mine");
    /// let holder = queue.hold();
    /// assert!(holder.is_some());
    /// queue.release(holder);
    /// # });
    /// ```
    pub fn release(&self, holder: Option<TaskRef>) {
        let Some(primitive) = self.0.primitive.get() else { return };
        let mut holders = primitive.holders.borrow_mut();
        if let Some(place) = holders.iter().position(|task| Some(*task) == holder) {
            self.note(primitive, PermitEvent::Given(holders.remove(place)));
        }
    }

    /// Logs that a permit of the queue's primitive was taken or given back, if the primitive has a
    /// name.
    fn note(&self, primitive: &Primitive, event: PermitEvent) {
        if gate::is_listening() && !primitive.name.is_empty() {
            gate::post(Post::Note(Note::Permit(self.0.clone(), event)));
        }
    }

    /// Records `tasks` as the holders, in place of the tasks recorded by [`WaitQueue::hold`].
    pub(crate) fn held_by(&self, tasks: impl Iterator<Item = TaskRef>) {
        if let Some(primitive) = self.0.primitive.get() {
            let mut holders = primitive.holders.borrow_mut();
            holders.clear();
            holders.extend(tasks);
        }
    }

    /// Waits at the tail of the queue for a wake or a permit. *Blocks*, unless the queue keeps a
    /// permit; then the wait takes this permit. Can be interrupted. If the future is dropped after
    /// it was woken, the wake-up passes to the next waiter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use traps::{Kind, WaitQueue, timeout_after};
    ///
    /// # testing::run(async {
    /// let queue = WaitQueue::new();
    /// let woken = timeout_after(Duration::from_secs(1), queue.wait()).await;
    /// assert_eq!(woken.unwrap_err().kind(), Kind::TaskTimeout); // no task called `wake`
    /// # });
    /// ```
    #[track_caller]
    pub fn wait(&self) -> WaitInQueue {
        self.wait_from(Location::caller())
    }

    /// Waits like [`WaitQueue::wait`], for a wrapper that passes its caller's location.
    ///
    /// ```
    /// use std::panic::Location;
    /// use traps::{Interrupt, WaitQueue};
    ///
    /// /// Waits for a turn. The log shows the line that calls this.
    /// #[track_caller]
    /// fn turn(queue: &WaitQueue) -> impl Future<Output = Result<(), Interrupt>> {
    ///     queue.wait_from(Location::caller())
    /// }
    ///
    /// # testing::run(async {
    /// turn(&WaitQueue::with_permits(1)).await.unwrap();
    /// # });
    /// ```
    pub fn wait_from(&self, site: Site) -> WaitInQueue {
        WaitInQueue::new(self.0.clone(), false, site)
    }

    /// Waits at the tail of the queue for a permit. If the future is dropped after it got the
    /// permit, the permit goes to the next waiter, or the queue keeps it.
    ///
    /// ```
    /// use traps::{WaitQueue, join};
    ///
    /// # testing::run(async {
    /// let queue = WaitQueue::new();
    /// let give = async { queue.give_permit() };
    /// join(queue.wait_for_permit(), give).await.0.unwrap();
    /// assert_eq!(queue.permits(), 0); // the wait has it
    /// # });
    /// ```
    #[track_caller]
    pub fn wait_for_permit(&self) -> WaitInQueue {
        self.wait_for_permit_from(Location::caller())
    }

    /// Waits like [`WaitQueue::wait_for_permit`], for a wrapper that passes its caller's location.
    ///
    /// ```
    /// use std::panic::Location;
    /// use traps::WaitQueue;
    ///
    /// # testing::run(async {
    /// let queue = WaitQueue::with_permits(1);
    /// queue.wait_for_permit_from(Location::caller()).await.unwrap();
    /// # });
    /// ```
    pub fn wait_for_permit_from(&self, site: Site) -> WaitInQueue {
        WaitInQueue::new(self.0.clone(), true, site)
    }

    /// Wakes at most `n` waiters, from the head of the queue, when the task next traps or parks. *A
    /// post*: a `Drop` can call it.
    ///
    /// ```
    /// use traps::{WaitQueue, spawn, yield_now};
    ///
    /// # testing::run(async {
    /// let queue = WaitQueue::new();
    /// for name in ["one", "two", "three"] {
    ///     let theirs = queue.clone();
    ///     spawn(name, async move { theirs.wait().await }).detached().await;
    /// }
    /// yield_now().await.unwrap();
    /// queue.wake(2);
    /// yield_now().await.unwrap();
    /// assert_eq!(queue.waiting(), 1);
    /// # queue.wake(1);
    /// # });
    /// ```
    pub fn wake(&self, n: u64) {
        // Post even if no task waits yet. This poll may have filed a wait, which is in the queue
        // only once the kernel has read the list of what was filed.
        gate::post(Post::Wake(self.0.clone(), n));
    }

    /// Hands a permit to the first waiter, or keeps it if there is none. No other task can take it
    /// on the way. A `Drop` can call it.
    ///
    /// ```
    /// let queue = traps::WaitQueue::new();
    /// queue.give_permit();
    /// assert_eq!(queue.permits(), 1); // no task waits, so the queue keeps it
    /// ```
    pub fn give_permit(&self) {
        // The queue can be empty although a wait was filed in this poll, because the kernel has not
        // read the list yet. Then the queue keeps the permit, and the kernel gives it to the wait.
        if self.0.len.get() == 0 {
            self.0.keep_permit();
        } else {
            gate::post(Post::Permit(self.0.clone(), true));
        }
    }

    /// Gives `n` permits, like `n` calls of [`WaitQueue::give_permit`].
    ///
    /// ```
    /// let queue = traps::WaitQueue::new();
    /// queue.give_permits(3);
    /// assert_eq!(queue.permits(), 3);
    /// ```
    pub fn give_permits(&self, n: u32) {
        let handed = n.min(u32::try_from(self.0.len.get()).unwrap_or(u32::MAX));
        (0..handed).for_each(|_| self.give_permit());
        self.0.permits.set(self.0.permits.get().saturating_add(n - handed));
    }

    /// Returns the number of permits that are kept now. A permit on its way to a waiter is not
    /// kept.
    ///
    /// ```
    /// assert_eq!(traps::WaitQueue::with_permits(3).permits(), 3);
    /// ```
    pub fn permits(&self) -> u32 {
        self.0.permits.get()
    }

    /// Takes a permit and returns whether one was free. A permit is not free if a task waits for
    /// it.
    ///
    /// ```
    /// let queue = traps::WaitQueue::with_permits(1);
    /// assert!(queue.try_take_permit());
    /// assert!(!queue.try_take_permit());
    /// ```
    #[must_use]
    pub fn try_take_permit(&self) -> bool {
        self.0.take_permit()
    }

    /// Returns the number of tasks that wait now.
    ///
    /// ```
    /// use traps::{WaitQueue, spawn, yield_now};
    ///
    /// # testing::run(async {
    /// let queue = WaitQueue::new();
    /// let theirs = queue.clone();
    /// spawn("task", async move { theirs.wait().await }).detached().await;
    /// assert_eq!(queue.waiting(), 0); // the task has not run yet
    /// yield_now().await.unwrap();
    /// assert_eq!(queue.waiting(), 1);
    /// # queue.wake(1);
    /// # });
    /// ```
    pub fn waiting(&self) -> usize {
        usize::try_from(self.0.len.get()).unwrap_or(usize::MAX)
    }
}

/// The future of [`WaitQueue::wait`].
///
/// ```
/// use traps::{WaitInQueue, WaitQueue};
///
/// # testing::run(async {
/// let queue = WaitQueue::with_permits(1);
/// let wait: WaitInQueue = queue.wait();
/// wait.await.unwrap(); // takes the permit
/// # });
/// ```
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct WaitInQueue {
    queue: Rc<Queue>,
    /// Whether the queue keeps the permit if this wait is dropped unread and no other task waits.
    keep: bool,
    call: Call,
}

impl WaitInQueue {
    pub(crate) fn new(queue: Rc<Queue>, keep: bool, site: Site) -> WaitInQueue {
        WaitInQueue { queue, keep, call: Call::from(site) }
    }
}

impl Future for WaitInQueue {
    type Output = Result<(), Interrupt>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let WaitInQueue { queue, keep, call } = &mut *self;
        let trap = || Trap::Wait { queue: queue.clone(), keep: *keep };
        call.poll(cx, trap).map(Reply::done)
    }
}

/// A permit of a queue, and the task that the log shows as its holder. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Held {
    queue: WaitQueue,
    task: Option<TaskRef>,
    /// Whether the drop gives the permit back.
    returns: bool,
}

impl Held {
    /// Takes a permit. Blocks while there is none.
    pub(super) async fn acquire(queue: WaitQueue, site: Site) -> Result<Held, Interrupt> {
        let mut held = Held::acquire_briefly(queue, site).await?;
        held.task = held.queue.hold_from(site);
        Ok(held)
    }

    /// Takes a permit that the task gives back before its next trap, so no holder is recorded.
    pub(super) async fn acquire_briefly(queue: WaitQueue, site: Site) -> Result<Held, Interrupt> {
        if !queue.try_take_permit() {
            queue.wait_for_permit_from(site).await?;
        }
        Ok(Held { task: None, queue, returns: true })
    }

    /// Takes a permit if one is free.
    pub(super) fn try_acquire(queue: WaitQueue, site: Site) -> Option<Held> {
        queue.try_take_permit().then(|| Held { task: queue.hold_from(site), queue, returns: true })
    }

    /// Drops the permit without giving it back.
    pub(super) fn forget(mut self) {
        self.returns = false;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Release first, so that the log shows the release before the wake of the next holder.
        self.queue.release(self.task);
        if self.returns {
            self.queue.give_permit();
        }
    }
}

/// A guard that calls its function on drop, also if a panic or a dropped future is the cause. Take
/// the function out to disarm the guard.
pub(crate) struct OnDrop<F: FnOnce()>(pub(crate) Option<F>);

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}
