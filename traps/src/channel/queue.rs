//! Queues for any number of tasks, as in Curio. Every task that has a queue can put items and take
//! them. A queue has no senders and receivers, and is never closed.
//!
//! [`FifoQueue`] is first in, first out. [`LifoQueue`] is last in, first out. [`PriorityQueue`]
//! returns the smallest item first; if equal, the oldest one.
//!
//! ```
//! use std::{cell::Cell, rc::Rc};
//! use traps::channel::queue::FifoQueue;
//! use traps::spawn;
//!
//! # testing::run(async {
//! let (queue, sum) = (FifoQueue::new(16), Rc::new(Cell::new(0)));
//! let (jobs, total) = (queue.clone(), sum.clone());
//! let worker = spawn("worker", async move {
//!     while let Ok(n) = jobs.get().await {
//!         total.set(total.get() + n);
//!         jobs.task_done();
//!     }
//! })
//! .await;
//! for n in 0..100 {
//!     queue.put(n).await.unwrap();
//! }
//! queue.join().await.unwrap(); // until the worker has done all of them
//! assert_eq!(sum.get(), 4950);
//! # worker.cancel().await.unwrap();
//! # });
//! ```

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;

use super::{Content, LocalRc, OneThread, queue_of, until};
use crate::core::table::Site;
use crate::sync::OnDrop;
use crate::{Error, Interrupt, Rejected, WaitQueue};

/// The order in which a queue returns its items.
///
/// ```
/// use std::collections::VecDeque;
/// use traps::channel::queue::{Discipline, OrderedQueue};
///
/// /// Even numbers before odd numbers.
/// struct EvenFirst;
///
/// impl Discipline<u32> for EvenFirst {
///     fn insert(items: &mut VecDeque<u32>, item: u32) {
///         let index = items.partition_point(|older| older % 2 <= item % 2);
///         items.insert(index, item);
///     }
/// }
///
/// let queue = OrderedQueue::<u32, EvenFirst>::unbounded();
/// [1, 2, 3, 4].map(|n| queue.try_put(n).unwrap());
/// assert_eq!([(); 4].map(|()| queue.try_get().unwrap()), [2, 4, 1, 3]);
/// ```
pub trait Discipline<T> {
    /// Inserts an item at its position in `items`. The first item of `items` is returned first.
    /// Must add this item and change nothing else, because the queue counts one item for each call.
    fn insert(items: &mut VecDeque<T>, item: T) {
        items.push_back(item);
    }
}

/// The discipline of a [`FifoQueue`]: first in, first out.
///
/// ```
/// use traps::channel::queue::{Fifo, OrderedQueue};
///
/// let queue = OrderedQueue::<_, Fifo>::unbounded();
/// [1, 2].map(|n| queue.try_put(n).unwrap());
/// assert_eq!(queue.try_get(), Ok(1));
/// ```
#[derive(Debug)]
pub struct Fifo;

/// The discipline of a [`LifoQueue`]: last in, first out.
///
/// ```
/// use traps::channel::queue::{Lifo, OrderedQueue};
///
/// let queue = OrderedQueue::<_, Lifo>::unbounded();
/// [1, 2].map(|n| queue.try_put(n).unwrap());
/// assert_eq!(queue.try_get(), Ok(2));
/// ```
#[derive(Debug)]
pub struct Lifo;

/// The discipline of a [`PriorityQueue`]: the smallest item first; if equal, the oldest one.
///
/// ```
/// use traps::channel::queue::{OrderedQueue, SmallestFirst};
///
/// let queue = OrderedQueue::<_, SmallestFirst>::unbounded();
/// [2, 1].map(|n| queue.try_put(n).unwrap());
/// assert_eq!(queue.try_get(), Ok(1));
/// ```
#[derive(Debug)]
pub struct SmallestFirst;

impl<T> Discipline<T> for Fifo {}

impl<T> Discipline<T> for Lifo {
    fn insert(items: &mut VecDeque<T>, item: T) {
        items.push_front(item);
    }
}

impl<T: Ord> Discipline<T> for SmallestFirst {
    fn insert(items: &mut VecDeque<T>, item: T) {
        items.insert(items.partition_point(|older| *older <= item), item);
    }
}

/// The items of a queue, or of an [mpsc](super::mpsc) channel, and the tasks that wait for an item
/// or for room.
pub(super) struct Buffer<T, D> {
    items: RefCell<VecDeque<T>>,
    discipline: PhantomData<D>,
    pub(super) bound: usize,
    /// The queue of tasks that wait for an item. It has one permit for each item that is not
    /// reserved for a task yet.
    pub(super) ready: WaitQueue,
    /// The queue of tasks that wait for room. It has one permit for each further item that fits.
    /// `None` without a bound.
    room: Option<WaitQueue>,
}

impl<T, D: Discipline<T>> Buffer<T, D> {
    pub(super) fn new(kind: &'static str, name: Cow<'static, str>, bound: usize) -> Self {
        assert!(bound > 0, "rule: there is room for one item at least");
        let permits = u32::try_from(bound).ok().map(WaitQueue::with_permits);
        Buffer {
            items: RefCell::default(),
            discipline: PhantomData,
            bound,
            room: permits.map(|room| room.described(kind, name.clone())),
            ready: queue_of(kind, name),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.items.borrow().len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.bound
    }

    /// Takes room for an item. Blocks while there is none.
    pub(super) async fn wait_for_room(&self, site: Site) -> Result<(), Interrupt> {
        match &self.room {
            Some(room) if !room.try_take_permit() => room.wait_for_permit_from(site).await,
            _ => Ok(()),
        }
    }

    /// Inserts an item, for which the caller has taken room.
    pub(super) fn push(&self, item: T) {
        // If a comparison panics, the room is free again for the next item.
        let free_room = || self.room.iter().for_each(WaitQueue::give_permit);
        let mut if_panicked = OnDrop(Some(free_room));
        D::insert(&mut self.items.borrow_mut(), item);
        if_panicked.0 = None;
        self.ready.give_permit();
    }

    /// Inserts an item if there is free room.
    pub(super) fn try_push(&self, item: T) -> Result<(), Rejected<T>> {
        if self.room.as_ref().is_some_and(|room| !room.try_take_permit()) {
            return Err(Rejected { item: Some(item), why: Error::Full });
        }
        self.push(item);
        Ok(())
    }

    /// Removes the first item, and gives its room to the next put.
    fn pop(&self) -> Option<T> {
        let item = self.items.borrow_mut().pop_front()?;
        self.room.as_ref().inspect(|room| room.give_permit());
        Some(item)
    }

    /// Wakes the tasks that wait for room, because there will be no more.
    pub(super) fn wake_senders(&self) {
        self.room.as_ref().inspect(|room| room.wake(u64::MAX));
    }
}

impl<T, D: Discipline<T>> Content for Buffer<T, D> {
    type Item = T;

    fn receive(&self, _: &mut u64) -> Result<T, Error> {
        let item = self.pop().ok_or(Error::Empty)?;
        // Take the permit of the item. If a woken wait already has it, this takes the permit of a
        // newer item. Only a wake-up is lost then, and the one receiver checks for an item before
        // it waits.
        let _ = self.ready.try_take_permit();
        Ok(item)
    }

    fn discard(&self) {
        self.wake_senders();
        // If the drop of one item panics, the other items are dropped all the same.
        drop(self.items.take());
    }
}

/// A queue that is first in, first out.
///
/// ```
/// use traps::channel::queue::FifoQueue;
///
/// let queue = FifoQueue::unbounded();
/// [2, 3, 1].map(|n| queue.try_put(n).unwrap());
/// assert_eq!([(); 3].map(|()| queue.try_get().unwrap()), [2, 3, 1]);
/// ```
pub type FifoQueue<T> = OrderedQueue<T, Fifo>;

/// A queue that is last in, first out.
///
/// ```
/// use traps::channel::queue::LifoQueue;
///
/// let queue = LifoQueue::unbounded();
/// [2, 3, 1].map(|n| queue.try_put(n).unwrap());
/// assert_eq!([(); 3].map(|()| queue.try_get().unwrap()), [1, 3, 2]);
/// ```
pub type LifoQueue<T> = OrderedQueue<T, Lifo>;

/// A queue that returns the smallest item first; if equal, the oldest one. To get the largest
/// first, put [`Reverse`](std::cmp::Reverse) items. A put moves the items before or after its
/// position, whichever are fewer. The comparison must not use the queue. If the comparison panics,
/// the item is not put.
///
/// ```
/// use traps::channel::queue::PriorityQueue;
///
/// let queue = PriorityQueue::unbounded();
/// [2, 3, 1].map(|n| queue.try_put(n).unwrap());
/// assert_eq!([(); 3].map(|()| queue.try_get().unwrap()), [1, 2, 3]);
/// ```
pub type PriorityQueue<T> = OrderedQueue<T, SmallestFirst>;

/// A queue with the discipline `D`: a [`FifoQueue`], a [`LifoQueue`] or a [`PriorityQueue`].
///
/// Clones share one queue. An item is reserved for a waiting get in its turn, but the choice of the
/// item is made only when its task runs.
///
/// ```
/// use traps::channel::queue::{Discipline, OrderedQueue, PriorityQueue};
///
/// /// Takes all items that no task waits for.
/// fn drain<T, D: Discipline<T>>(queue: &OrderedQueue<T, D>) -> Vec<T> {
///     std::iter::from_fn(|| queue.try_get().ok()).collect()
/// }
///
/// let queue = PriorityQueue::new(16);
/// ["b", "a"].map(|item| queue.try_put(item).unwrap());
/// assert_eq!(drain(&queue), ["a", "b"]);
/// ```
pub struct OrderedQueue<T, D> {
    one_thread: OneThread,
    shared: LocalRc<Tracked<T, D>>,
}

/// A buffer, with the count of the items that are not done.
struct Tracked<T, D> {
    /// The queue of tasks in [`OrderedQueue::join`].
    joins: WaitQueue,
    buffer: Buffer<T, D>,
    /// The number of items that were put and have not been reported as done.
    unfinished: Cell<u64>,
    /// The number of times that `unfinished` has dropped to zero.
    rounds: Cell<u64>,
}

impl<T, D> Clone for OrderedQueue<T, D> {
    fn clone(&self) -> Self {
        OrderedQueue { one_thread: PhantomData, shared: LocalRc(self.shared.clone()) }
    }
}

impl<T, D> fmt::Debug for OrderedQueue<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queue")
    }
}

impl<T, D: Discipline<T>> OrderedQueue<T, D> {
    /// Makes an empty queue for at most `n` items.
    ///
    /// ```
    /// let queue = traps::channel::queue::FifoQueue::new(1);
    /// assert!(queue.try_put("first").is_ok());
    /// assert!(queue.try_put("second").is_err());
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if `n` is zero, because no item could ever be put.
    pub fn new(n: usize) -> Self {
        OrderedQueue::named("", n)
    }

    /// Makes an empty queue without a bound. A put never waits.
    ///
    /// ```
    /// let queue = traps::channel::queue::LifoQueue::<u32>::unbounded();
    /// assert_eq!(queue.capacity(), usize::MAX);
    /// ```
    pub fn unbounded() -> Self {
        OrderedQueue::named("", usize::MAX)
    }

    /// Makes a queue like [`new`](OrderedQueue::new), with a name for the log. A bound
    /// above `u32::MAX` counts as none.
    ///
    /// ```
    /// use traps::channel::queue::FifoQueue;
    ///
    /// # let ran = testing::run(async {
    /// let jobs = FifoQueue::named("jobs", 16);
    /// let put = async { jobs.put(7).await };
    /// // The get waits first: the log has `queue jobs`.
    /// let (got, _) = traps::join(jobs.get(), put).await;
    /// assert_eq!(got, Ok(7));
    /// # });
    /// # assert!(ran.trace.contains("queue jobs"), "{}", ran.trace);
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if `n` is zero.
    pub fn named(name: impl Into<Cow<'static, str>>, n: usize) -> Self {
        let name = name.into();
        let shared = LocalRc(Rc::new(Tracked {
            joins: queue_of("queue", name.clone()),
            buffer: Buffer::new("queue", name, n),
            unfinished: Cell::default(),
            rounds: Cell::default(),
        }));
        OrderedQueue { one_thread: PhantomData, shared }
    }

    /// Returns the number of items. An item on its way to a waiting get counts.
    ///
    /// ```
    /// let queue = traps::channel::queue::FifoQueue::new(16);
    /// queue.try_put(7).unwrap();
    /// assert_eq!(queue.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.shared.buffer.len()
    }

    /// Returns whether there are no items.
    ///
    /// ```
    /// assert!(traps::channel::queue::FifoQueue::<u32>::new(16).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether there is no room left.
    ///
    /// ```
    /// let queue = traps::channel::queue::FifoQueue::new(1);
    /// queue.try_put(7).unwrap();
    /// assert!(queue.is_full());
    /// ```
    pub fn is_full(&self) -> bool {
        self.shared.buffer.is_full()
    }

    /// Returns the largest number of items that fit. It is `usize::MAX` without a bound.
    ///
    /// ```
    /// assert_eq!(traps::channel::queue::FifoQueue::<u32>::new(16).capacity(), 16);
    /// ```
    pub fn capacity(&self) -> usize {
        self.shared.buffer.bound
    }

    /// Puts an item. *Blocks* while there is no room. If this future is dropped, it has put
    /// nothing, and the item is dropped with it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use traps::channel::queue::FifoQueue;
    /// use traps::{Error, timeout_after};
    ///
    /// # testing::run(async {
    /// let queue = FifoQueue::new(1);
    /// queue.put("first").await.unwrap();
    /// let second = timeout_after(Duration::from_secs(1), queue.put("second"));
    /// assert_eq!(second.await.unwrap_err().item, Some("second")); // no task took the first
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::Interrupt`] if the wait was interrupted.
    #[track_caller]
    pub fn put(&self, item: T) -> impl Future<Output = Result<(), Rejected<T>>> {
        let site = Location::caller();
        async move {
            if let Err(interrupt) = self.shared.buffer.wait_for_room(site).await {
                return Err(Rejected { item: Some(item), why: interrupt.into() });
            }
            self.shared.buffer.push(item);
            self.shared.unfinished.update(|items| items + 1);
            Ok(())
        }
    }

    /// Puts an item if there is free room. Room is not free if a task waits for it.
    ///
    /// ```
    /// use traps::Error;
    ///
    /// let queue = traps::channel::queue::FifoQueue::new(1);
    /// queue.try_put(7).unwrap();
    /// let rejected = queue.try_put(8).unwrap_err();
    /// assert_eq!((rejected.item, rejected.why), (Some(8), Error::Full));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::Full`] if there is no free room.
    pub fn try_put(&self, item: T) -> Result<(), Rejected<T>> {
        self.shared.buffer.try_push(item)?;
        self.shared.unfinished.update(|items| items + 1);
        Ok(())
    }

    /// Takes the next item. *Blocks* while there is none. If this future is dropped, it has taken
    /// nothing.
    ///
    /// ```
    /// use traps::channel::queue::FifoQueue;
    ///
    /// # testing::run(async {
    /// let queue = FifoQueue::new(16);
    /// queue.put(7).await.unwrap();
    /// assert_eq!(queue.get().await, Ok(7));
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait.
    #[track_caller]
    pub fn get(&self) -> impl Future<Output = Result<T, Interrupt>> {
        let site = Location::caller();
        async move {
            let ready = &self.shared.buffer.ready;
            if !ready.try_take_permit() {
                ready.wait_for_permit_from(site).await?;
            }
            Ok(self.pop())
        }
    }

    /// Takes the next item, if an item is there that is not reserved for a waiting task.
    ///
    /// ```
    /// use traps::Error;
    ///
    /// let queue = traps::channel::queue::FifoQueue::<u32>::new(16);
    /// assert_eq!(queue.try_get(), Err(Error::Empty));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Empty`] if there is none.
    pub fn try_get(&self) -> Result<T, Error> {
        self.shared.buffer.ready.try_take_permit().then(|| self.pop()).ok_or(Error::Empty)
    }

    fn pop(&self) -> T {
        self.shared.buffer.pop().expect("rule: there is an item for each permit")
    }

    /// Records that an item of the queue is done.
    ///
    /// ```
    /// use traps::channel::queue::FifoQueue;
    ///
    /// # testing::run(async {
    /// let queue = FifoQueue::new(16);
    /// queue.put(7).await.unwrap();
    /// queue.get().await.unwrap();
    /// queue.task_done();
    /// queue.join().await.unwrap(); // returns at once
    /// # });
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if more items are done than were put.
    #[track_caller]
    pub fn task_done(&self) {
        let Tracked { joins, unfinished, rounds, .. } = &**self.shared;
        let left = unfinished.get().checked_sub(1);
        unfinished.set(left.expect("rule: no more items are done than were put"));
        if left == Some(0) {
            rounds.update(|rounds| rounds + 1);
            joins.wake(u64::MAX);
        }
    }

    /// Waits until every item that was put is [done](OrderedQueue::task_done), even if another item
    /// is put before this task runs. *Blocks*, unless all items are done.
    ///
    /// ```
    /// use std::time::Duration;
    /// use traps::channel::queue::FifoQueue;
    /// use traps::{clock, sleep, spawn};
    ///
    /// # testing::run(async {
    /// let queue = FifoQueue::new(16);
    /// queue.put(7).await.unwrap();
    /// let jobs = queue.clone();
    /// spawn("worker", async move {
    ///     let seconds = jobs.get().await?;
    ///     sleep(Duration::from_secs(seconds)).await?;
    ///     jobs.task_done();
    ///     Ok::<(), traps::Error>(())
    /// })
    /// .detached()
    /// .await;
    /// queue.join().await.unwrap();
    /// assert_eq!(clock().await.as_micros(), 7_000_000);
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait.
    #[track_caller]
    pub fn join(&self) -> impl Future<Output = Result<(), Interrupt>> {
        let Tracked { joins, unfinished, rounds, .. } = &**self.shared;
        let (before, site) = (rounds.get(), Location::caller());
        until(joins, site, move || unfinished.get() == 0 || rounds.get() > before)
    }
}
