//! Objects that tasks and threads share: a queue and an event. Tasks await them; threads block on
//! them.
//!
//! They are built from [`outside()`](crate::outside()) and one lock for each object. The kernel
//! does not know them. A timeout of a thread is in real time, so it reads the system's clock. A
//! timeout of a task is a scope, as everywhere.
//!
//! An *operation* is a put or a get. If it cannot be done at once, it joins the *waits* of its kind
//! with a number and a `Waiter`. A later operation, or the close of the queue, serves it and wakes
//! the waiter. The woken operation then takes its result under the lock.
//!
//! The invariant is that of `Contents`: the oldest items are reserved for the gets that wait. A
//! wake-up carries no item. So if a woken get gives up, no item is lost, and none has to be handed
//! back.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
#[cfg(not(all(test, loom)))]
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, ready};
#[cfg(not(all(test, loom)))]
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use std::{fmt, mem};

#[cfg(all(test, loom))]
use self::model_tests::{Mutex, Thread, park, thread};
use crate::combine::Either;
use crate::core::protocol::{Act, ParkedOn};
use crate::core::{gate, wait};
use crate::error::{Error, Rejected};
use crate::interrupts::interrupt::Interrupt;
use crate::outside::{OutsideCall, OutsideWaker};
use crate::parts::tape;
use crate::verbs::{Budget, budget};

#[cfg(all(test, loom))]
mod model_tests;
#[cfg(all(test, not(loom)))]
mod queue_tests;

/// A bounded queue between tasks and threads, in both directions. First in, first out.
///
/// Clones share one queue; send one to a thread. Tasks await [`put`](UniversalQueue::put) and
/// [`get`](UniversalQueue::get). Threads block in [`put_blocking`](UniversalQueue::put_blocking)
/// and [`get_blocking`](UniversalQueue::get_blocking). An operation that need not wait makes no
/// trap and no system call. It takes one operation from the task's budget, and a lock.
///
/// Tasks and threads wait together: in one list for items, and in another for room. An item or room
/// that becomes free is handed to the first waiter, and no later waiter overtakes it. An item
/// counts until its receiver has it, so the bound is exact.
///
/// No interrupt loses an item. If a get gives up after it was handed an item, the item goes back to
/// its position in the order. (So it can be received after a younger item that another get was
/// handed before.) If a put gives up, the error contains its item. An operation that gives up is no
/// longer among the waits.
///
/// On the simulated machine, mark a wait for a real thread as [`external`](Get::external), so that
/// the virtual clock stands still. Between tasks of one kernel, the queue is as reproducible as any
/// trap.
///
/// ```
/// use traps::universal::UniversalQueue;
///
/// # testing::run(async {
/// let queue = UniversalQueue::new(16);
/// let theirs = queue.clone();
/// let thread = std::thread::spawn(move || {
///     for n in 0..100 {
///         theirs.put_blocking(n).expect("the queue is open");
///     }
///     theirs.close();
/// });
/// let mut sum = 0;
/// while let Ok(n) = queue.get().external().await {
///     sum += n;
/// }
/// assert_eq!(sum, 4950);
/// # thread.join().unwrap();
/// # });
/// ```
pub struct UniversalQueue<T> {
    queue: Arc<Locked<T>>,
}

impl<T> Clone for UniversalQueue<T> {
    fn clone(&self) -> UniversalQueue<T> {
        UniversalQueue { queue: self.queue.clone() }
    }
}

impl<T> fmt::Debug for UniversalQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UniversalQueue").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T> UniversalQueue<T> {
    /// Makes an empty queue for at most `n` items.
    ///
    /// ```
    /// let queue = traps::universal::UniversalQueue::new(1);
    /// assert!(queue.try_put("first").is_ok());
    /// assert!(queue.try_put("second").is_err());
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if `n` is zero, because no item could ever be put.
    #[must_use]
    pub fn new(n: usize) -> UniversalQueue<T> {
        assert!(n > 0, "rule: a queue has room for one item at least");
        UniversalQueue { queue: Arc::new(Locked::new(n)) }
    }

    /// Returns the number of items. An item on its way to a waiting get counts.
    ///
    /// ```
    /// let queue = traps::universal::UniversalQueue::new(16);
    /// queue.try_put(7).unwrap();
    /// assert_eq!(queue.len(), 1);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.with(|contents| contents.len())
    }

    /// Returns whether there are no items.
    ///
    /// ```
    /// assert!(traps::universal::UniversalQueue::<u32>::new(16).is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of waiting puts and gets, for tests and reports. It can be out of date at
    /// once.
    ///
    /// ```
    /// use traps::universal::UniversalQueue;
    /// use traps::{spawn, yield_now};
    ///
    /// # testing::run(async {
    /// let queue = UniversalQueue::<u32>::new(16);
    /// let theirs = queue.clone();
    /// let getter = spawn("getter", async move { theirs.get().await }).await;
    /// yield_now().await.unwrap();
    /// assert_eq!(queue.waiting(), 1);
    /// getter.cancel().await.unwrap();
    /// assert_eq!(queue.waiting(), 0);
    /// # });
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.with(|contents| contents.puts.len() + contents.gets.len())
    }

    /// Returns whether the queue was closed.
    ///
    /// ```
    /// let queue = traps::universal::UniversalQueue::<u32>::new(16);
    /// queue.close();
    /// assert!(queue.is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.with(|contents| contents.closed)
    }

    /// Closes the queue for puts. Waiting puts get their items back. Gets still take the remaining
    /// items, and fail after that. Closing a closed queue has no effect.
    ///
    /// ```
    /// use traps::Error;
    ///
    /// let queue = traps::universal::UniversalQueue::new(16);
    /// queue.try_put(7).unwrap();
    /// queue.close();
    /// assert!(queue.try_put(8).is_err());
    /// assert_eq!(queue.try_get(), Ok(7));
    /// assert_eq!(queue.try_get(), Err(Error::Closed));
    /// ```
    pub fn close(&self) {
        self.queue.with(|contents| contents.closed = true);
    }

    /// Opens a closed queue for puts again.
    fn reopen(&self) {
        self.queue.with(|contents| contents.closed = false);
    }

    /// Puts an item if there is room. Can be called from anywhere. Never blocks.
    ///
    /// ```
    /// use traps::Error;
    ///
    /// let queue = traps::universal::UniversalQueue::new(1);
    /// queue.try_put(7).unwrap();
    /// let rejected = queue.try_put(8).unwrap_err();
    /// assert_eq!((rejected.item, rejected.why), (Some(8), Error::Full));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::Full`] or [`Error::Closed`].
    pub fn try_put(&self, item: T) -> Result<(), Rejected<T>> {
        let mut put = Operation::put(item);
        let ended = self.queue.with(|contents| contents.try_now(&mut put));
        finish_put(put.item, ended)
    }

    /// Takes the oldest item that is not reserved for a waiting get. Can be called from anywhere.
    /// Never blocks.
    ///
    /// ```
    /// use traps::Error;
    ///
    /// let queue = traps::universal::UniversalQueue::<u32>::new(16);
    /// assert_eq!(queue.try_get(), Err(Error::Empty));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Empty`] or [`Error::Closed`].
    pub fn try_get(&self) -> Result<T, Error> {
        let mut get = Operation::get();
        let ended = self.queue.with(|contents| contents.try_now(&mut get));
        finish_get(get.item, ended)
    }

    /// Puts an item. *Blocks* the task while there is no room.
    ///
    /// If an interrupt arrives while the item is in the queue and not reserved for a get, the put
    /// takes the item back. Otherwise the put has succeeded, and the task's next blocking trap gets
    /// the interrupt.
    ///
    /// ```
    /// use std::time::Duration;
    /// use traps::timeout_after;
    /// use traps::universal::UniversalQueue;
    ///
    /// # testing::run(async {
    /// let queue = UniversalQueue::new(1);
    /// queue.put("first").await.unwrap();
    /// let second = timeout_after(Duration::from_secs(1), queue.put("second"));
    /// assert_eq!(second.await.unwrap_err().item, Some("second")); // the queue stayed full
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::Interrupt`] or [`Error::Closed`].
    #[track_caller]
    pub fn put(&self, item: T) -> Put<T> {
        Waiting::new(Act::Put, &self.queue, Operation::put(item), finish_put)
    }

    /// Takes the oldest item. *Blocks* the task while there is none.
    ///
    /// ```
    /// use traps::universal::UniversalQueue;
    ///
    /// # testing::run(async {
    /// let queue = UniversalQueue::new(16);
    /// queue.put(7).await.unwrap();
    /// assert_eq!(queue.get().await, Ok(7));
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Interrupt`] or [`Error::Closed`].
    #[track_caller]
    pub fn get(&self) -> Get<T> {
        self.get_as(Act::Get, finish_get)
    }

    /// Makes a get that the log shows as `what`.
    #[track_caller]
    fn get_as<R>(&self, what: Act, finish: Finish<T, R>) -> Waiting<T, R> {
        Waiting::new(what, &self.queue, Operation::get(), finish)
    }

    /// Puts an item. Blocks this thread while there is no room.
    ///
    /// ```
    /// use std::thread;
    /// use traps::universal::UniversalQueue;
    ///
    /// let queue = UniversalQueue::new(1);
    /// let theirs = queue.clone();
    /// let putter = thread::spawn(move || (1..=3).try_for_each(|n| theirs.put_blocking(n)));
    /// assert_eq!([(); 3].map(|()| queue.get_blocking().unwrap()), [1, 2, 3]);
    /// putter.join().unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::Closed`].
    ///
    /// # Panics
    ///
    /// Panics inside a task. Also panics if it has to wait on a thread on which a kernel runs.
    pub fn put_blocking(&self, item: T) -> Result<(), Rejected<T>> {
        block(&self.queue, Operation::put(item), finish_put, None)
    }

    /// Puts an item like [`UniversalQueue::put_blocking`], but waits at most for `duration` in real
    /// time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use traps::Error;
    ///
    /// let queue = traps::universal::UniversalQueue::new(1);
    /// queue.try_put(7).unwrap();
    /// let late = queue.put_blocking_timeout(8, Duration::from_millis(1)).unwrap_err();
    /// assert_eq!((late.item, late.why), (Some(8), Error::TimedOut));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::TimedOut`] or [`Error::Closed`].
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`UniversalQueue::put_blocking`].
    pub fn put_blocking_timeout(&self, item: T, duration: Duration) -> Result<(), Rejected<T>> {
        block(&self.queue, Operation::put(item), finish_put, Some(duration))
    }

    /// Takes the oldest item. Blocks this thread while there is none.
    ///
    /// ```
    /// let queue = traps::universal::UniversalQueue::new(16);
    /// let theirs = queue.clone();
    /// std::thread::spawn(move || theirs.put_blocking(7));
    /// assert_eq!(queue.get_blocking(), Ok(7));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Closed`].
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`UniversalQueue::put_blocking`].
    pub fn get_blocking(&self) -> Result<T, Error> {
        block(&self.queue, Operation::get(), finish_get, None)
    }

    /// Takes an item like [`UniversalQueue::get_blocking`], but waits at most for `duration` in
    /// real time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use traps::Error;
    ///
    /// let queue = traps::universal::UniversalQueue::<u32>::new(16);
    /// let late = queue.get_blocking_timeout(Duration::from_millis(1));
    /// assert_eq!(late, Err(Error::TimedOut));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::TimedOut`] or [`Error::Closed`].
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`UniversalQueue::put_blocking`].
    pub fn get_blocking_timeout(&self, duration: Duration) -> Result<T, Error> {
        block(&self.queue, Operation::get(), finish_get, Some(duration))
    }
}

/// The future of [`UniversalQueue::put`].
///
/// ```
/// use traps::universal::{Put, UniversalQueue};
///
/// # testing::run(async {
/// let queue = UniversalQueue::new(16);
/// let put: Put<u32> = queue.put(7);
/// put.await.unwrap();
/// assert_eq!(queue.try_get(), Ok(7));
/// # });
/// ```
pub type Put<T> = Waiting<T, Result<(), Rejected<T>>>;

/// The future of [`UniversalQueue::get`].
///
/// ```
/// use traps::universal::{Get, UniversalQueue};
///
/// # testing::run(async {
/// let queue = UniversalQueue::new(16);
/// queue.try_put(7).unwrap();
/// let get: Get<u32> = queue.get();
/// assert_eq!(get.await, Ok(7));
/// # });
/// ```
pub type Get<T> = Waiting<T, Result<T, Error>>;

fn finish_put<T>(item: Option<T>, ended: OperationResult) -> Result<(), Rejected<T>> {
    ended.map_err(|why| Rejected { item, why })
}

fn finish_get<T>(item: Option<T>, ended: OperationResult) -> Result<T, Error> {
    ended.map(|()| item.expect("rule: a get that is done has an item"))
}

/// A flag that tasks and threads set and wait for. It stays set until it is cleared.
///
/// Clones share one event; send one to a thread. Setting the flag wakes its waiters in the order in
/// which they arrived. A woken wait ends even if the flag is cleared at once. A wait that is
/// interrupted, dropped or timed out is removed from the waits at once.
///
/// On the simulated machine, mark a wait for a real thread as [`external`](WaitEvent::external).
///
/// ```
/// use traps::universal::UniversalEvent;
///
/// # testing::run(async {
/// let ready = UniversalEvent::new();
/// let theirs = ready.clone();
/// std::thread::spawn(move || theirs.set());
/// ready.wait().external().await.unwrap();
/// assert!(ready.is_set());
/// # });
/// ```
#[derive(Clone)]
pub struct UniversalEvent {
    /// A queue without items. A get from it waits until the queue is closed, which means that the
    /// flag is set.
    queue: UniversalQueue<Infallible>,
}

impl Default for UniversalEvent {
    fn default() -> UniversalEvent {
        UniversalEvent { queue: UniversalQueue::new(1) }
    }
}

impl fmt::Debug for UniversalEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UniversalEvent").field("set", &self.is_set()).finish_non_exhaustive()
    }
}

impl UniversalEvent {
    /// Makes a flag that is not set.
    ///
    /// ```
    /// assert!(!traps::universal::UniversalEvent::new().is_set());
    /// ```
    #[must_use]
    pub fn new() -> UniversalEvent {
        UniversalEvent::default()
    }

    /// Sets the flag, and wakes all waiters in the order in which they arrived. Can be called from
    /// anywhere. Never blocks.
    ///
    /// ```
    /// let event = traps::universal::UniversalEvent::new();
    /// event.set();
    /// assert!(event.is_set());
    /// ```
    pub fn set(&self) {
        self.queue.close();
    }

    /// Clears the flag. Can be called from anywhere. Never blocks.
    ///
    /// ```
    /// let event = traps::universal::UniversalEvent::new();
    /// event.set();
    /// event.clear();
    /// assert!(!event.is_set());
    /// ```
    pub fn clear(&self) {
        self.queue.reopen();
    }

    /// Returns whether the flag is set.
    ///
    /// ```
    /// assert!(!traps::universal::UniversalEvent::new().is_set());
    /// ```
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.queue.is_closed()
    }

    /// Returns the number of waiters, for tests and reports. It can be out of date at once.
    ///
    /// ```
    /// use traps::universal::UniversalEvent;
    /// use traps::{spawn, yield_now};
    ///
    /// # testing::run(async {
    /// let event = UniversalEvent::new();
    /// let theirs = event.clone();
    /// spawn("waiter", async move { theirs.wait().await }).detached().await;
    /// yield_now().await.unwrap();
    /// assert_eq!(event.waiting(), 1);
    /// event.set();
    /// # });
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// Waits until the flag is set. *Blocks* the task, unless it is set.
    ///
    /// ```
    /// use traps::spawn;
    /// use traps::universal::UniversalEvent;
    ///
    /// # testing::run(async {
    /// let event = UniversalEvent::new();
    /// let theirs = event.clone();
    /// spawn("setter", async move { theirs.set() }).detached().await;
    /// event.wait().await.unwrap();
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait.
    #[track_caller]
    pub fn wait(&self) -> WaitEvent {
        self.queue.get_as(Act::Event, |_, ended| match ended {
            Err(Error::Interrupt(interrupt)) => Err(interrupt),
            _closed => Ok(()),
        })
    }

    /// Waits until the flag is set. Blocks this thread, unless it is set.
    ///
    /// ```
    /// let event = traps::universal::UniversalEvent::new();
    /// let theirs = event.clone();
    /// std::thread::spawn(move || theirs.set());
    /// event.wait_blocking();
    /// assert!(event.is_set());
    /// ```
    ///
    /// # Panics
    ///
    /// Panics inside a task. Also panics if it has to wait on a thread on which a kernel runs.
    pub fn wait_blocking(&self) {
        let Err(_closed) = self.queue.get_blocking();
    }

    /// Waits like [`UniversalEvent::wait_blocking`], but at most for `duration` in real time.
    /// Returns whether the flag was set.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let event = traps::universal::UniversalEvent::new();
    /// assert!(!event.wait_blocking_timeout(Duration::from_millis(1)));
    /// ```
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`UniversalEvent::wait_blocking`].
    pub fn wait_blocking_timeout(&self, duration: Duration) -> bool {
        self.queue.get_blocking_timeout(duration) == Err(Error::Closed)
    }
}

/// The future of [`UniversalEvent::wait`].
///
/// ```
/// use traps::universal::{UniversalEvent, WaitEvent};
///
/// # testing::run(async {
/// let event = UniversalEvent::new();
/// event.set();
/// let wait: WaitEvent = event.wait();
/// wait.await.unwrap();
/// # });
/// ```
pub type WaitEvent = Waiting<Infallible, Result<(), Interrupt>>;

/// The wait of a task for an operation on a queue of `T`: a [`Put`], a [`Get`] or a [`WaitEvent`].
///
/// If it is dropped while it waits, the operation has had no effect.
///
/// ```
/// use traps::universal::{UniversalQueue, Waiting};
///
/// # testing::run(async {
/// let queue = UniversalQueue::<u32>::new(16);
/// let get: Waiting<_, _> = queue.get();
/// drop(get);
/// assert_eq!(queue.waiting(), 0);
/// # });
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Waiting<T, R> {
    queue: Arc<Locked<T>>,
    operation: Operation<T>,
    /// The operation's share of the task's budget. `None` once it was granted.
    budget: Option<Budget>,
    wait: OutsideCall,
    finish: Finish<T, R>,
}

/// The text of the error if a replay reaches the wake of a thread.
const NO_VALUES: &str = "\
the program waits at a queue or an event that a thread has used: a replay has no values of threads";

/// A function that makes the output of a wait from the item and the outcome of its operation.
type Finish<T, R> = fn(Option<T>, OperationResult) -> R;

impl<T, R> Waiting<T, R> {
    #[track_caller]
    fn new(
        what: Act,
        queue: &Arc<Locked<T>>,
        operation: Operation<T>,
        finish: Finish<T, R>,
    ) -> Waiting<T, R> {
        let (budget, wait) =
            (Some(budget()), OutsideCall::here(ParkedOn::Universal(what, queue.1)));
        Waiting { queue: queue.clone(), operation, budget, wait, finish }
    }

    /// States that a real thread will end the wait. A virtual clock stands still until then.
    ///
    /// ```
    /// use std::thread;
    /// use traps::clock;
    /// use traps::universal::UniversalEvent;
    ///
    /// # testing::run(async {
    /// let event = UniversalEvent::new();
    /// let theirs = event.clone();
    /// thread::spawn(move || theirs.set());
    /// event.wait().external().await.unwrap();
    /// assert_eq!(clock().await.as_micros(), 0); // the virtual clock stood still
    /// # });
    /// ```
    pub fn external(mut self) -> Waiting<T, R> {
        self.wait.external = true;
        if let ParkedOn::Universal(act, _) = self.wait.what {
            self.wait.what = ParkedOn::Outside(act.word());
        }
        self
    }

    /// Polls for the end of the operation. Returns `Err` if the wait was interrupted.
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Result<OperationResult, Interrupt>> {
        let Waiting { queue, operation, budget, wait, .. } = self;
        if let Some(asked) = budget {
            // Take from the budget first: other threads can keep filling the queue, so that it is
            // never empty.
            ready!(Pin::new(asked).poll(cx))?;
            *budget = None;
            if let Some(ended) = operation.advance(queue, None) {
                return Poll::Ready(Ok(ended));
            }
        }
        let enqueue = |waker| operation.advance(queue, Some(Waiter::Task(waker)));
        Poll::Ready(match ready!(wait.poll(cx, enqueue)) {
            Either::Left(ended) => Ok(ended),
            Either::Right(Err(interrupt)) => Err(interrupt),
            Either::Right(Ok(())) => match operation.advance(queue, None) {
                Some(ended) => Ok(ended),
                None => {
                    tape::diverge(NO_VALUES);
                    assert!(tape::answers(), "rule: a woken operation finds its result");
                    return Poll::Pending;
                }
            },
        })
    }
}

impl<T, R> fmt::Debug for Waiting<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("wait", &self.wait).finish_non_exhaustive()
    }
}

impl<T, R> Unpin for Waiting<T, R> {}

impl<T, R> Future for Waiting<T, R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        let ended = ready!(self.poll_ended(cx));
        let Waiting { queue, operation, finish, .. } = &mut *self;
        let ended = ended.unwrap_or_else(|interrupt| {
            let ended = operation.give_up(queue, Error::Interrupt(interrupt.clone()));
            if ended.is_ok() {
                // The operation has succeeded, so the task's next blocking trap gets the interrupt.
                wait::give_back(&interrupt);
            }
            ended
        });
        Poll::Ready(finish(operation.item.take(), ended))
    }
}

impl<T, R> Drop for Waiting<T, R> {
    fn drop(&mut self) {
        self.wait.abandon();
        self.operation.withdraw(&self.queue, false);
    }
}

/// Does an operation on this thread, and blocks the thread for `duration` at most.
///
/// # Panics
///
/// Panics inside a task. Also panics if it has to wait on a thread on which a kernel runs.
fn block<T, R>(
    queue: &Locked<T>,
    mut operation: Operation<T>,
    finish: Finish<T, R>,
    duration: Option<Duration>,
) -> R {
    let rule = "rule: a task does not block its kernel's thread; await the operation";
    assert!(gate::task().is_none(), "{rule}");
    // Try without a waiter first: an operation that need not wait is allowed even on a thread with
    // a kernel, outside its tasks.
    let mut ended = operation.advance(queue, None);
    if ended.is_none() {
        let rule =
            "rule: a thread does not block while a kernel runs on it, which may have to wake it";
        assert!(gate::epoch() == 0, "{rule}");
        ended = operation.advance(queue, Some(Waiter::Thread(thread::current())));
    }
    let deadline = duration.and_then(|duration| Instant::now().checked_add(duration));
    let mut in_time = true;
    while ended.is_none() && in_time {
        in_time = park(deadline);
        ended = operation.advance(queue, None);
    }
    let ended = ended.unwrap_or_else(|| operation.give_up(queue, Error::TimedOut));
    finish(operation.item, ended)
}

/// Parks this thread until `deadline` at most. Returns whether the deadline is still ahead. Can
/// return early.
#[cfg(not(all(test, loom)))]
fn park(deadline: Option<Instant>) -> bool {
    match deadline {
        None => thread::park(),
        Some(deadline) => {
            thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
        }
    }
    deadline.is_none_or(|deadline| Instant::now() < deadline)
}

/// A waiting task or thread. Any thread can wake it.
#[derive(Debug)]
enum Waiter {
    Task(OutsideWaker),
    Thread(Thread),
}

impl Waiter {
    fn wake(self) {
        match self {
            Waiter::Task(waker) => waker.wake(),
            Waiter::Thread(thread) => thread.unpark(),
        }
    }
}

/// The result of a put or a get. The item is in the operation.
type OperationResult = Result<(), Error>;

/// A put or a get in progress.
struct Operation<T> {
    kind: PutOrGet,
    /// The item of the put or the get. A put has it until the item is in the queue or the put is in
    /// among the waits. A get has it once the item is taken.
    item: Option<T>,
    /// The number of the operation among the waits of its kind, until it has its outcome.
    number: Option<u64>,
}

#[derive(Clone, Copy, PartialEq)]
enum PutOrGet {
    Put,
    Get,
}

impl<T> Operation<T> {
    fn put(item: T) -> Operation<T> {
        Operation { kind: PutOrGet::Put, item: Some(item), number: None }
    }

    fn get() -> Operation<T> {
        Operation { kind: PutOrGet::Get, item: None, number: None }
    }

    /// Tries the operation. If the operation already waits, takes its outcome instead. Returns
    /// `None` if it has to wait, or to wait on. If `waiter` is given, the operation then waits with
    /// that waiter.
    fn advance(&mut self, queue: &Locked<T>, waiter: Option<Waiter>) -> Option<OperationResult> {
        // A waiter that is not used, or that is replaced, stays in this variable, so that it is
        // dropped after the lock is released: its drop can run code of the kernel.
        let mut waiter = waiter;
        queue.with(|contents| {
            let Some(number) = self.number else {
                let ended = contents.try_now(self);
                if matches!(ended, Err(Error::Full | Error::Empty)) {
                    contents.enqueue(self, waiter.take()?);
                    return None;
                }
                return Some(ended);
            };
            let waits = contents.waits(self.kind);
            if let Some(old) = find(waits, number).and_then(|place| waits[place].1.as_mut()) {
                waiter.iter_mut().for_each(|new| mem::swap(old, new));
                return None;
            }
            self.number = None;
            Some(contents.take_outcome(self, number))
        })
    }

    /// Ends the wait with the error `why`. But a put whose item was already taken, or is reserved
    /// for a get, has succeeded.
    fn give_up(&mut self, queue: &Locked<T>, why: Error) -> OperationResult {
        self.withdraw(queue, true);
        let is_done = self.kind == PutOrGet::Put && self.item.is_none();
        if is_done { Ok(()) } else { Err(why) }
    }

    /// Removes the operation from the waits. A put that still waits for room takes its item back.
    /// If its item is already in the queue, the item stays there, unless `undo` is set and the item
    /// is not reserved for a get.
    fn withdraw(&mut self, queue: &Locked<T>, undo: bool) {
        let Some(number) = self.number.take() else { return };
        let left = queue.with(|contents| {
            let reserved = contents.reserved();
            let left = remove(contents.waits(self.kind), number);
            let is_free = find(&contents.items, number).is_some_and(|place| place >= reserved);
            if is_free && (left.is_some() || undo) {
                self.item = remove(&mut contents.items, number);
            }
            left
        });
        drop(left);
    }
}

/// The contents of a queue behind a lock, and the number of the queue. No user code is called or
/// dropped under the lock, so the contents of a poisoned lock are still correct.
struct Locked<T>(Mutex<Contents<T>>, u32);

/// The number of queues made in this process. The log of a kernel numbers queues on its own.
static MADE: AtomicU32 = AtomicU32::new(0);

impl<T> Locked<T> {
    fn new(room: usize) -> Locked<T> {
        let (items, puts, gets) = (Numbered::new(), Numbered::new(), Numbered::new());
        let contents = Contents { room, closed: false, last: 0, items, puts, gets };
        Locked(Mutex::new(contents), MADE.fetch_add(1, Relaxed))
    }

    /// Works under the lock, then releases it and wakes the waiters that the work has served.
    fn with<R>(&self, work: impl FnOnce(&mut Contents<T>) -> R) -> R {
        let mut contents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut contents);
        let woken = contents.hand_over();
        drop(contents);
        woken.into_iter().for_each(Waiter::wake);
        result
    }
}

/// A list of values in the order of their numbers.
type Numbered<X> = VecDeque<(u64, X)>;

/// The waits of one kind, in the order of arrival. A woken wait has no waiter any more, but stays
/// in the list until its operation takes the outcome.
type Waits = Numbered<Option<Waiter>>;

fn find<X>(things: &Numbered<X>, number: u64) -> Option<usize> {
    things.binary_search_by_key(&number, |(found, _)| *found).ok()
}

fn remove<X>(things: &mut Numbered<X>, number: u64) -> Option<X> {
    things.remove(find(things, number)?).map(|(_, thing)| thing)
}

/// The items of a queue, its waiting puts, and its waiting gets.
///
/// Items of puts that wait for room are stored after the items that are *in* the queue. Of the
/// items in the queue, the oldest are reserved for the waiting gets: the first item for the first
/// get, and so on. So a get that gives up passes its item on when it is removed from the list, and
/// a later get finds only the items that are not reserved.
///
/// For example, items 1, 2 and 3 are in the queue, and gets `a` and `b` are in the list. Item 1 is
/// reserved for `a`, and item 2 for `b`. If `a` gives up, item 1 is reserved for `b`, and items 2
/// and 3 are free.
struct Contents<T> {
    room: usize,
    closed: bool,
    /// The last number that was given to an item or to a get.
    last: u64,
    items: Numbered<T>,
    /// The puts that wait for room, by the number of their item. In a closed queue, the refused
    /// puts.
    puts: Waits,
    /// The gets that wait for an item, and the served gets that have not taken their items yet.
    gets: Waits,
}

impl<T> Contents<T> {
    /// Returns the number of items in the queue.
    fn len(&self) -> usize {
        self.items.len() - self.puts.len()
    }

    /// Returns the number of items that are reserved for gets.
    fn reserved(&self) -> usize {
        self.len().min(self.gets.len())
    }

    /// Admits as many waiting puts as there is room for, and ends the waits that are over. Returns
    /// the waiters to wake, in order.
    fn hand_over(&mut self) -> Vec<Waiter> {
        let mut woken = Vec::new();
        if self.puts.is_empty() && self.gets.is_empty() {
            // No operation waits, which is the usual case.
            return woken;
        }
        if self.closed {
            woken.extend(self.puts.iter_mut().filter_map(|(_, waiter)| waiter.take()));
        } else {
            let let_in = self.puts.len().min(self.room - self.len());
            woken.extend(self.puts.drain(..let_in).filter_map(|(_, waiter)| waiter));
        }
        let is_over = self.closed && self.len() == 0;
        let served = if is_over { self.gets.len() } else { self.reserved() };
        woken.extend(self.gets.range_mut(..served).filter_map(|(_, waiter)| waiter.take()));
        woken
    }

    /// Tries an operation. `Full` or `Empty` means that it must wait, and that nothing was done.
    fn try_now(&mut self, operation: &mut Operation<T>) -> OperationResult {
        match operation.kind {
            PutOrGet::Put if self.closed => Err(Error::Closed),
            PutOrGet::Put if self.len() >= self.room => Err(Error::Full),
            PutOrGet::Put => {
                self.last += 1;
                self.items.extend(operation.item.take().map(|item| (self.last, item)));
                Ok(())
            }
            PutOrGet::Get if self.len() > self.reserved() => {
                operation.item = self.items.remove(self.reserved()).map(|(_, item)| item);
                Ok(())
            }
            PutOrGet::Get if self.closed && self.len() == 0 => Err(Error::Closed),
            PutOrGet::Get => Err(Error::Empty),
        }
    }

    /// Appends an operation that has to wait to the waits of its kind.
    fn enqueue(&mut self, operation: &mut Operation<T>, waiter: Waiter) {
        self.last += 1;
        let number = *operation.number.insert(self.last);
        self.items.extend(operation.item.take().map(|item| (number, item)));
        self.waits(operation.kind).push_back((number, Some(waiter)));
    }

    fn waits(&mut self, kind: PutOrGet) -> &mut Waits {
        match kind {
            PutOrGet::Put => &mut self.puts,
            PutOrGet::Get => &mut self.gets,
        }
    }

    /// Ends a wait that is over: takes the operation's item, if it has one, and returns the
    /// outcome.
    fn take_outcome(&mut self, operation: &mut Operation<T>, number: u64) -> OperationResult {
        let Some(place) = find(self.waits(operation.kind), number) else {
            // The put was admitted.
            return Ok(());
        };
        let is_served = operation.kind == PutOrGet::Get && place < self.len();
        self.waits(operation.kind).remove(place);
        if is_served {
            operation.item = self.items.remove(place).map(|(_, item)| item);
            return Ok(());
        }
        // The queue was closed. A refused put takes its item back; items have the numbers of their
        // puts, so a get finds none under its own number.
        operation.item = remove(&mut self.items, number);
        Err(Error::Closed)
    }
}
