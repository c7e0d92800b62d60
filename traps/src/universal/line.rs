//! The two lines of a universal queue, its items, and what becomes of a put or a get.

use std::collections::VecDeque;
use std::mem;
#[cfg(not(all(test, loom)))]
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
#[cfg(not(all(test, loom)))]
use std::thread::Thread;

#[cfg(all(test, loom))]
use super::model_tests::{Mutex, Thread};
use crate::error::Error;
use crate::outside::OutsideWaker;

/// Who waits, to be woken from any thread.
#[derive(Debug)]
pub enum Waiter {
    Task(OutsideWaker),
    Thread(Thread),
}

impl Waiter {
    pub(super) fn wake(self) {
        match self {
            Waiter::Task(waker) => waker.wake(),
            Waiter::Thread(thread) => thread.unpark(),
        }
    }
}

/// How a put or a get ended.
pub(super) type Ended = Result<(), Error>;

/// A put or a get under way.
pub struct Operation<T> {
    pub(super) kind: Kind,
    /// Of a put, until it is in the queue or in the line; of a get, once it has it.
    pub(super) item: Option<T>,
    /// Its number, from when it joins the line until it hears of its end.
    pub(super) number: Option<u64>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Put,
    Get,
}

impl<T> Operation<T> {
    pub(super) fn put(item: T) -> Operation<T> {
        Operation { kind: Kind::Put, item: Some(item), number: None }
    }

    pub(super) fn get() -> Operation<T> {
        Operation { kind: Kind::Get, item: None, number: None }
    }

    /// Does it, or finds what has become of it. If it has to wait, it stands in line with that
    /// waiter, if there is one.
    pub(super) fn advance(&mut self, queue: &Shared<T>, waiter: Option<Waiter>) -> Option<Ended> {
        // The waker that is left here is dropped after the lock is released.
        let mut waiter = waiter;
        queue.with(|state| {
            let Some(number) = self.number else {
                let ended = state.attempt(self);
                if matches!(ended, Err(Error::Full | Error::Empty)) {
                    state.enqueue(self, waiter.take()?);
                    return None;
                }
                return Some(ended);
            };
            let line = state.line(self.kind);
            if let Some(waits) = find(line, number).and_then(|place| line[place].1.as_mut()) {
                waiter.iter_mut().for_each(|waiter| mem::swap(waits, waiter));
                return None;
            }
            self.number = None;
            Some(state.outcome(self, number))
        })
    }

    /// Fails for that reason, unless it is a put and somebody has its item.
    pub(super) fn give_up(&mut self, queue: &Shared<T>, why: Error) -> Ended {
        self.leave(queue, true);
        let is_done = self.kind == Kind::Put && self.item.is_none();
        if is_done { Ok(()) } else { Err(why) }
    }

    /// Leaves the line; a put that waited has its item again. If its item is in, that stays in,
    /// unless the put is to be undone and nobody has it.
    pub(super) fn leave(&mut self, queue: &Shared<T>, undo: bool) {
        let Some(number) = self.number.take() else { return };
        let left = queue.with(|state| {
            let reserved = state.reserved();
            let left = remove(state.line(self.kind), number);
            let is_free = find(&state.items, number).is_some_and(|place| place >= reserved);
            if is_free && (left.is_some() || undo) {
                self.item = remove(&mut state.items, number);
            }
            left
        });
        drop(left);
    }
}

/// A queue behind its lock. Under it nothing foreign is called or dropped, so a poisoned lock still
/// guards what is whole.
pub struct Shared<T>(Mutex<State<T>>, pub(super) u32);

/// How many were made in this process. A kernel's log has numbers of its own.
static MADE: AtomicU32 = AtomicU32::new(0);

impl<T> Shared<T> {
    pub(super) fn new(room: usize) -> Shared<T> {
        let (items, puts, gets) = (Numbered::new(), Numbered::new(), Numbered::new());
        let state = State { room, closed: false, last: 0, items, puts, gets };
        Shared(Mutex::new(state), MADE.fetch_add(1, Relaxed))
    }

    /// Works under the lock, and wakes after it whom that concerns.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut State<T>) -> R) -> R {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut state);
        let woken = state.hand_over();
        drop(state);
        woken.into_iter().for_each(Waiter::wake);
        result
    }
}

/// Things in the order of their numbers.
pub(super) type Numbered<X> = VecDeque<(u64, X)>;

/// Those who wait, in the order in which they came. Whoever was woken has no waiter any more, and
/// stays here until it looks.
pub(super) type Line = Numbered<Option<Waiter>>;

pub(super) fn find<X>(things: &Numbered<X>, number: u64) -> Option<usize> {
    things.binary_search_by_key(&number, |(found, _)| *found).ok()
}

pub(super) fn remove<X>(things: &mut Numbered<X>, number: u64) -> Option<X> {
    things.remove(find(things, number)?).map(|(_, thing)| thing)
}

/// The items of a queue, and its waiters.
///
/// The items of puts that wait for room stand behind the items that are in. Of those that are in,
/// the oldest are reserved for the gets that stand in line: the first item for the first get, and
/// so on. So a get that gives up passes its item on just by leaving the line, and whoever comes
/// later finds only what is left over.
pub(super) struct State<T> {
    pub(super) room: usize,
    pub(super) closed: bool,
    /// The number that was given out last, to an item or to a get.
    last: u64,
    pub(super) items: Numbered<T>,
    /// Puts that wait for room, by the number of their item; in a closed queue, those refused.
    pub(super) puts: Line,
    /// Gets that wait for an item.
    pub(super) gets: Line,
}

impl<T> State<T> {
    /// How many items are in.
    pub(super) fn len(&self) -> usize {
        self.items.len() - self.puts.len()
    }

    /// How many of them are reserved for gets in line.
    pub(super) fn reserved(&self) -> usize {
        self.len().min(self.gets.len())
    }

    /// Lets puts in for which there is room, and ends waits that are over. Gives those who are to
    /// be woken, in order.
    fn hand_over(&mut self) -> Vec<Waiter> {
        let mut woken = Vec::new();
        if self.puts.is_empty() && self.gets.is_empty() {
            // Mostly: a short way out keeps the lock short.
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

    /// Does an operation. `Full` or `Empty`: it has to wait, and nothing was done.
    pub(super) fn attempt(&mut self, operation: &mut Operation<T>) -> Ended {
        match operation.kind {
            Kind::Put if self.closed => Err(Error::Closed),
            Kind::Put if self.len() >= self.room => Err(Error::Full),
            Kind::Put => {
                self.last += 1;
                self.items.extend(operation.item.take().map(|item| (self.last, item)));
                Ok(())
            }
            Kind::Get if self.len() > self.reserved() => {
                operation.item = self.items.remove(self.reserved()).map(|(_, item)| item);
                Ok(())
            }
            Kind::Get if self.closed && self.len() == 0 => Err(Error::Closed),
            Kind::Get => Err(Error::Empty),
        }
    }

    /// An operation that has to wait goes to the end of its line.
    pub(super) fn enqueue(&mut self, operation: &mut Operation<T>, waiter: Waiter) {
        self.last += 1;
        let number = *operation.number.insert(self.last);
        self.items.extend(operation.item.take().map(|item| (number, item)));
        self.line(operation.kind).push_back((number, Some(waiter)));
    }

    pub(super) fn line(&mut self, kind: Kind) -> &mut Line {
        match kind {
            Kind::Put => &mut self.puts,
            Kind::Get => &mut self.gets,
        }
    }

    /// What has become of an operation that was in line and need not wait any more.
    pub(super) fn outcome(&mut self, operation: &mut Operation<T>, number: u64) -> Ended {
        let Some(place) = find(self.line(operation.kind), number) else {
            // A put that was let in.
            return Ok(());
        };
        let is_served = operation.kind == Kind::Get && place < self.len();
        self.line(operation.kind).remove(place);
        if is_served {
            operation.item = self.items.remove(place).map(|(_, item)| item);
            return Ok(());
        }
        // Only a put has an item under its own number.
        operation.item = remove(&mut self.items, number);
        Err(Error::Closed)
    }
}
