//! Queues for any number of tasks, as in Curio. Every task that has a queue can put items and take
//! them. A queue has no sides and is never closed.
//!
//! [`Queue`] is first in, first out. [`LifoQueue`] is last in, first out. [`PriorityQueue`] returns
//! the smallest item first, and of equal items the oldest.
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
use crate::core::table::Site;
use crate::sync::OnDrop;
use crate::{Error, Interrupt, Rejected, WaitQueue};

/// The order in which items are taken.
pub trait Order<T> {
    /// Inserts an item at its position in `items`. The first item of `items` is taken first.
    fn push(items: &mut VecDeque<T>, item: T) {
        items.push_back(item);
    }
}

/// The order of a [`Queue`]: first in, first out.
#[derive(Debug)]
pub struct Fifo;

/// The order of a [`LifoQueue`]: last in, first out.
#[derive(Debug)]
pub struct Lifo;

/// The order of a [`PriorityQueue`]: the smallest item first; if equal, the oldest one.
#[derive(Debug)]
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

/// The content of a queue, or of an [mpsc](super::mpsc) channel.
#[derive(Debug)]
pub struct Stock<T, O> {
    items: RefCell<VecDeque<T>>,
    order: PhantomData<O>,
    bound: usize,
    /// The queue of tasks that wait for an item. It has one permit for each item that is not
    /// reserved for a task yet.
    pub(super) line: WaitQueue,
    /// The queue of tasks that wait for room. It has one permit for each further item that fits.
    /// `None` without a bound.
    pub(super) room: Option<WaitQueue>,
    /// The number of items that were put and have not been reported as done.
    unfinished: Cell<u64>,
    /// The number of times that `unfinished` has dropped to zero.
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

    /// Takes the first item, and gives its room to the next put.
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
        // Take the permit of the item. If a woken wait already has it, this takes the permit of a
        // newer item. Only a wake-up is lost then, and the one receiver looks for an item before it
        // waits.
        let _ = self.line.try_take_permit();
        Ok(item)
    }
    fn abandon(&self) {
        self.room.as_ref().inspect(|room| room.wake(u64::MAX));
        // If the drop of one item panics, the other items are dropped all the same.
        drop(self.items.take());
    }
}

impl<T, O: Order<T>, const SIDE: usize> End<Stock<T, O>, SIDE> {
    /// Returns the number of items. An item on its way to a waiting get counts.
    pub fn len(&self) -> usize {
        self.shared.state.items.borrow().len()
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether there is no room left.
    pub fn is_full(&self) -> bool {
        self.len() >= self.capacity()
    }

    /// Returns the largest number of items that fit. It is `usize::MAX` without a bound.
    pub fn capacity(&self) -> usize {
        self.shared.state.bound
    }

    /// Takes room for an item. If there is no free room, returns the queue in which to wait for it.
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

    /// Puts an item into room that was already taken, unless `why` or a closed channel forbids it.
    pub(super) fn push(&self, item: T, why: Option<Error>) -> Result<(), Rejected<T>> {
        let is_closed = self.is_closed().then_some(Error::ReceiversGone);
        if let Some(why) = why.or(is_closed) {
            return Err(Rejected { item: Some(item), why });
        }
        let Stock { items, line, room, unfinished, .. } = &self.shared.state;
        // If a comparison panics, the room is free again for the next item.
        let give_back = || room.iter().for_each(WaitQueue::give_permit);
        let mut if_panicked = OnDrop(Some(give_back));
        O::push(&mut items.borrow_mut(), item);
        if_panicked.0 = None;
        unfinished.update(|items| items + 1);
        line.give_permit();
        Ok(())
    }
}

/// A queue that is first in, first out.
pub type Queue<T> = OrderedQueue<T, Fifo>;

/// A queue that is last in, first out.
pub type LifoQueue<T> = OrderedQueue<T, Lifo>;

/// A queue that returns the smallest item first; if equal, the oldest one. To get the largest
/// first, put [`Reverse`](std::cmp::Reverse) items. A put moves the items before or after its
/// position, whichever are fewer. The comparison must not use the queue. If the comparison panics,
/// the item is not put.
pub type PriorityQueue<T> = OrderedQueue<T, SmallestFirst>;

/// A queue that returns its items in the order `O`: [`Queue`], [`LifoQueue`] or [`PriorityQueue`].
///
/// Clones share one queue. An item is reserved for a waiting get in its turn, but the choice of the
/// item is made only when its task runs.
pub type OrderedQueue<T, O> = End<Stock<T, O>, BOTH>;

impl<T, O: Order<T>> Many<BOTH> for Stock<T, O> {}

impl<T, O: Order<T>> OrderedQueue<T, O> {
    /// Makes an empty queue for at most `n` items.
    ///
    /// # Panics
    ///
    /// Panics if `n` is zero, because no item could ever be put.
    pub fn bounded(n: usize) -> Self {
        End::named("", n)
    }

    /// Makes an empty queue without a bound. A put never waits.
    pub fn unbounded() -> Self {
        End::named("", usize::MAX)
    }

    /// Makes a queue like [`bounded`](End::bounded), with a name for the log. A bound above
    /// `u32::MAX` counts as none.
    ///
    /// # Panics
    ///
    /// Panics if `n` is zero.
    pub fn named(name: impl Into<Cow<'static, str>>, n: usize) -> Self {
        let name = name.into();
        End::of(&shared(line("queue", name.clone()), Stock::new("queue", name, n)), 0)
    }

    /// Puts an item. *Blocks* while there is no room. If this future is dropped, it has put
    /// nothing, and the item is dropped with it.
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::Interrupt`] if the wait was interrupted.
    #[track_caller]
    pub fn put(&self, item: T) -> impl Future<Output = Result<(), Rejected<T>>> {
        self.push_from(item, Location::caller())
    }

    /// Puts an item if there is free room. Room is not free if a task waits for it.
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::Full`] if there is no free room.
    pub fn try_put(&self, item: T) -> Result<(), Rejected<T>> {
        self.push(item, self.room().map(|_| Error::Full))
    }

    /// Takes the next item. *Blocks* while there is none. If this future is dropped, it has taken
    /// nothing.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait.
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

    /// Takes the next item, if an item is there that is not reserved for a waiting task.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Empty`] if there is none.
    pub fn try_get(&self) -> Result<T, Error> {
        self.shared.state.line.try_take_permit().then(|| self.pop()).ok_or(Error::Empty)
    }

    fn pop(&self) -> T {
        self.shared.state.pop().expect("rule: there is an item for each permit")
    }

    /// Records that an item of the queue is done.
    ///
    /// # Panics
    ///
    /// Panics if more items are done than were put.
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

    /// Waits until every item that was put is [done](End::task_done), even if another item is put
    /// before this task runs. *Blocks*, unless all items are done.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait.
    #[track_caller]
    pub fn join(&self) -> impl Future<Output = Result<(), Interrupt>> {
        let Stock { unfinished, rounds, .. } = &self.shared.state;
        let (before, site) = (rounds.get(), Location::caller());
        until(&self.shared.line, site, move || unfinished.get() == 0 || rounds.get() > before)
    }
}
