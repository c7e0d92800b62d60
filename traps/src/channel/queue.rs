//! Queues for any number of tasks, as in Curio: each task that has one may put and take. There are
//! no ends, and nothing is closed.
//!
//! [`Queue`] is first in, first out; [`LifoQueue`] is last in, first out; [`PriorityQueue`] gives
//! the smallest item first, and of equal ones the oldest.
//!
//! ```no_run
//! use traps::channel::queue::Queue;
//! use traps::spawn;
//!
//! # async fn example() -> Result<(), traps::Error> {
//! let queue = Queue::bounded(16);
//! let jobs = queue.clone();
//! spawn("worker", async move {
//!     while let Ok(n) = jobs.get().await {
//!         println!("{n}");
//!         jobs.task_done();
//!     }
//! })
//! .detached()
//! .await;
//! for n in 0..100 {
//!     queue.put(n).await?;
//! }
//! queue.join().await?; // All of them are done.
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::Location;

use super::{BOTH, End, Many, State, line, shared, until};
use crate::core::names::Site;
use crate::{Error, Interrupt, Rejected, WaitQueue};

/// The order in which items are taken.
pub trait Order<T> {
    /// Puts an item in its place. The first item is taken first.
    fn push(items: &mut VecDeque<T>, item: T) {
        items.push_back(item);
    }
}

/// First in, first out.
pub struct Fifo;

/// Last in, first out.
pub struct Lifo;

/// The smallest first, and of equal ones the oldest.
pub struct SmallestFirst;

impl<T> Order<T> for Fifo {}

impl<T> Order<T> for Lifo {
    fn push(items: &mut VecDeque<T>, item: T) {
        items.push_front(item);
    }
}

impl<T: Ord> Order<T> for SmallestFirst {
    fn push(items: &mut VecDeque<T>, item: T) {
        items.insert(items.partition_point(|older| *older <= item), item);
    }
}

/// The items of a queue, or of an [mpsc](super::mpsc) channel.
pub struct Stock<T, O> {
    items: RefCell<VecDeque<T>>,
    order: PhantomData<O>,
    bound: usize,
    /// Where tasks wait for an item. It has a permit for each that is nobody's yet.
    pub(super) line: WaitQueue,
    /// Where tasks wait for room. It has a permit for each item that may still come. `None` without
    /// a bound.
    pub(super) room: Option<WaitQueue>,
    /// How many items were put and are not done.
    unfinished: Cell<u64>,
    /// How often none was left.
    rounds: Cell<u64>,
}

impl<T, O: Order<T>> Stock<T, O> {
    pub(super) fn new(kind: &'static str, name: Cow<'static, str>, bound: usize) -> Self {
        assert!(bound > 0, "rule: there is room for one item at least");
        let permits = u32::try_from(bound).ok().map(WaitQueue::with_permits);
        Stock {
            items: RefCell::default(),
            order: PhantomData,
            bound,
            room: permits.map(|room| room.described(kind, name.clone())),
            line: line(kind, name),
            unfinished: Cell::default(),
            rounds: Cell::default(),
        }
    }

    /// Takes the first item. Its room is for the next who puts.
    fn pop(&self) -> Option<T> {
        let item = self.items.borrow_mut().pop_front()?;
        self.room.as_ref().inspect(|room| room.give_permit());
        Some(item)
    }
}

impl<T, O: Order<T>> State for Stock<T, O> {
    type Item = T;
    fn attempt(&self, _: &mut u64) -> Result<T, Error> {
        let item = self.pop().ok_or(Error::Empty)?;
        // Its permit. If a wait had that, this is a newer one, and only a wake is lost: the one
        // receiver looks for an item before it waits.
        let _ = self.line.try_take_permit();
        Ok(item)
    }
    fn abandon(&self) {
        self.room.as_ref().inspect(|room| room.wake(u64::MAX));
        while self.pop().is_some() {}
    }
}

impl<T, O: Order<T>, const SIDE: usize> End<Stock<T, O>, SIDE> {
    /// How many items are in it. Those on their way to a get that waited count.
    pub fn len(&self) -> usize {
        self.shared.state.items.borrow().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there are as many as it can hold.
    pub fn is_full(&self) -> bool {
        self.len() >= self.capacity()
    }

    /// How many items it can hold; `usize::MAX` without a bound.
    pub fn capacity(&self) -> usize {
        self.shared.state.bound
    }

    /// Takes room for an item. If there is none that nobody waits for, gives the line for it.
    pub(super) fn room(&self) -> Option<&WaitQueue> {
        let room = self.shared.state.room.as_ref();
        room.filter(|room| !self.is_closed() && !room.try_take_permit())
    }

    pub(super) async fn push_from(&self, item: T, site: Site) -> Result<(), Rejected<T>> {
        let interrupt = match self.room() {
            Some(room) => room.wait_for_permit_from(site).await.err(),
            None => None,
        };
        self.push(item, interrupt.map(Error::from))
    }

    /// Puts an item for which room was taken, unless there is a reason not to.
    pub(super) fn push(&self, item: T, why: Option<Error>) -> Result<(), Rejected<T>> {
        let is_closed = self.is_closed().then_some(Error::ReceiversGone);
        if let Some(why) = why.or(is_closed) {
            return Err(Rejected { item: Some(item), why });
        }
        let Stock { items, line, unfinished, .. } = &self.shared.state;
        O::push(&mut items.borrow_mut(), item);
        unfinished.update(|items| items + 1);
        line.give_permit();
        Ok(())
    }
}

/// First in, first out.
pub type Queue<T> = OrderedQueue<T, Fifo>;

/// Last in, first out.
pub type LifoQueue<T> = OrderedQueue<T, Lifo>;

/// The smallest first, and of equal ones the oldest. For the largest first, put
/// [`Reverse`](std::cmp::Reverse) items. A put moves the items on one side of its own. The
/// comparison may not use the queue.
pub type PriorityQueue<T> = OrderedQueue<T, SmallestFirst>;

/// A queue that gives its items in the order `O`: [`Queue`], [`LifoQueue`], [`PriorityQueue`].
///
/// Clones are the same queue. Whether a get has an item is decided by its place in the line; which
/// one it is, when its task runs.
pub type OrderedQueue<T, O> = End<Stock<T, O>, BOTH>;

impl<T, O: Order<T>> Many<BOTH> for Stock<T, O> {}

impl<T, O: Order<T>> OrderedQueue<T, O> {
    /// An empty queue that holds `n` items at most.
    ///
    /// # Panics
    ///
    /// If `n` is zero: nothing could ever be put.
    pub fn bounded(n: usize) -> Self {
        End::named("", n)
    }

    /// An empty queue without a bound: a put never waits.
    pub fn unbounded() -> Self {
        End::named("", usize::MAX)
    }

    /// [`bounded`](End::bounded) with a name for the log. A bound of more than `u32::MAX` is none.
    ///
    /// # Panics
    ///
    /// As [`bounded`](End::bounded).
    pub fn named(name: impl Into<Cow<'static, str>>, n: usize) -> Self {
        let name = name.into();
        End::of(&shared(line("queue", name.clone()), Stock::new("queue", name, n)), 0)
    }

    /// Puts an item. *Blocks* while there is no room. Dropped, it has put nothing, and the item is
    /// dropped with it.
    ///
    /// # Errors
    ///
    /// The item, and [`Error::Interrupt`].
    #[track_caller]
    pub fn put(&self, item: T) -> impl Future<Output = Result<(), Rejected<T>>> {
        self.push_from(item, Location::caller())
    }

    /// Puts an item if there is room that nobody waits for.
    ///
    /// # Errors
    ///
    /// The item, and [`Error::Full`].
    pub fn try_put(&self, item: T) -> Result<(), Rejected<T>> {
        self.push(item, self.room().map(|_| Error::Full))
    }

    /// Takes the item whose turn it is. *Blocks* while there is none. Dropped, it has taken
    /// nothing.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait.
    #[track_caller]
    pub fn get(&self) -> impl Future<Output = Result<T, Interrupt>> {
        let (line, site) = (&self.shared.state.line, Location::caller());
        async move {
            if !line.try_take_permit() {
                line.wait_for_permit_from(site).await?;
            }
            Ok(self.pop())
        }
    }

    /// Takes the item whose turn it is, if there is one that nobody waits for.
    ///
    /// # Errors
    ///
    /// [`Error::Empty`].
    pub fn try_get(&self) -> Result<T, Error> {
        self.shared.state.line.try_take_permit().then(|| self.pop()).ok_or(Error::Empty)
    }

    fn pop(&self) -> T {
        self.shared.state.pop().expect("rule: there is an item for each permit")
    }

    /// Notes that one item that was put is done with.
    ///
    /// # Panics
    ///
    /// If more items are done than were put.
    #[track_caller]
    pub fn task_done(&self) {
        let Stock { unfinished, rounds, .. } = &self.shared.state;
        let left = unfinished.get().checked_sub(1);
        unfinished.set(left.expect("rule: no more items are done than were put"));
        if left == Some(0) {
            rounds.update(|rounds| rounds + 1);
            self.shared.line.wake(u64::MAX);
        }
    }

    /// Waits until each item that was put is [done](End::task_done), even if another item is put
    /// before this task runs. *Blocks* unless all are.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait.
    #[track_caller]
    pub fn join(&self) -> impl Future<Output = Result<(), Interrupt>> {
        let Stock { unfinished, rounds, .. } = &self.shared.state;
        let (before, site) = (rounds.get(), Location::caller());
        until(&self.shared.line, site, move || unfinished.get() == 0 || rounds.get() > before)
    }
}
