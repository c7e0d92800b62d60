//! A put and a get, step by step: the same for tasks and threads.
//!
//! A task's has a handle of the queue; a thread's, which is over before its call is, borrows one:
//! each change of their count, which all threads share, costs as much as a lock.

use std::mem;
use std::ops::Deref;
use std::sync::Arc;

use super::core::{After, Core, Fate, Head, Refusal};
use super::error::{PutError, QueueError};
use super::locked::Locked;
use super::waiter::{Operation, Waiter};

/// A queue that tasks and threads share.
pub(super) type Shared<T> = Locked<T, Waiter>;

impl<T> Shared<T> {
    /// Works on the core, and wakes whom that concerns after the locks.
    pub(super) fn work<R>(
        &self,
        work: impl FnOnce(&mut Core<T, Waiter>, &mut Head<T>, &mut After<Waiter>) -> R,
    ) -> R {
        self.ask(|shared, after| shared.with(after, work))
    }

    /// Puts the item in `slot`, if there is room.
    pub(super) fn offer(&self, slot: &mut Option<T>) -> Result<(), Refusal> {
        self.ask(|shared, after| shared.try_put(slot, after))
    }

    /// Takes the oldest item, if one is free.
    pub(super) fn take(&self) -> Result<T, Refusal> {
        self.ask(Locked::try_get)
    }

    fn ask<R>(&self, ask: impl FnOnce(&Shared<T>, &mut After<Waiter>) -> R) -> R {
        let mut after = After::nothing();
        let result = ask(self, &mut after);
        if after.is_nothing() {
            // Nor is there anything to drop.
            mem::forget(after);
        } else {
            after.woken().for_each(Waiter::wake);
        }
        result
    }
}

/// A put under way.
pub(super) struct Putting<T, Q = Arc<Shared<T>>> {
    queue: Q,
    /// Here until it is in the queue or in the line.
    item: Option<T>,
    /// Its number in the line.
    number: Option<u64>,
}

impl<T, Q> Putting<T, Q> {
    pub(super) fn new(queue: Q, item: T) -> Putting<T, Q> {
        Putting { queue, item: Some(item), number: None }
    }
}

impl<T, Q: Deref<Target = Shared<T>>> Operation for Putting<T, Q> {
    type Output = Result<(), PutError<T>>;

    fn attempt(&mut self) -> Option<Self::Output> {
        let Putting { queue, item, .. } = self;
        match queue.offer(item) {
            Ok(()) => Some(Ok(())),
            Err(Refusal::Wait) => None,
            Err(Refusal::Closed) => {
                Some(Err(PutError { item: item.take(), why: QueueError::Closed }))
            }
        }
    }

    fn join(&mut self, waiter: Waiter) -> Option<Self::Output> {
        let Putting { queue, item, number } = self;
        let fate = queue.work(|core, _, after| match *number {
            Some(number) => match core.look_at_put(number, after) {
                Fate::Waits => {
                    core.rewake_put(number, waiter, after);
                    Fate::Waits
                }
                fate => fate,
            },
            None => match core.try_put(item, after) {
                Ok(()) => Fate::Done(()),
                Err(Refusal::Closed) => Fate::Closed(item.take().expect("it was not put")),
                Err(Refusal::Wait) => {
                    let item = item.take().expect("it was not put");
                    *number = Some(core.join_puts(item, waiter));
                    Fate::Waits
                }
            },
        });
        self.outcome(fate)
    }

    fn look(&mut self) -> Option<Self::Output> {
        let number = self.number.expect("who looks stands in line");
        let fate = self.queue.work(|core, _, after| core.look_at_put(number, after));
        self.outcome(fate)
    }

    fn leave(&mut self, why: QueueError) -> (Self::Output, Option<QueueError>) {
        let item = match self.number.take() {
            Some(number) => {
                self.queue.work(|core, head, after| core.take_back(number, head, after))
            }
            None => self.item.take(),
        };
        match item {
            Some(item) => (Err(PutError { item: Some(item), why }), None),
            None => (Ok(()), Some(why)),
        }
    }

    fn forget(&mut self) {
        // What got in stays in: it is not lost.
        if let Some(number) = self.number.take() {
            drop(self.queue.work(|core, _, after| core.leave_puts(number, after)));
        }
    }
}

impl<T, Q> Putting<T, Q> {
    fn outcome(&mut self, fate: Fate<(), T>) -> Option<Result<(), PutError<T>>> {
        let outcome = match fate {
            Fate::Waits => return None,
            Fate::Done(()) => Ok(()),
            Fate::Closed(item) => Err(PutError { item: Some(item), why: QueueError::Closed }),
        };
        self.number = None;
        Some(outcome)
    }
}

/// A get under way.
pub(super) struct Getting<Q> {
    queue: Q,
    /// Its number in the line.
    number: Option<u64>,
}

impl<Q> Getting<Q> {
    pub(super) fn new(queue: Q) -> Getting<Q> {
        Getting { queue, number: None }
    }
}

impl<T, Q: Deref<Target = Shared<T>>> Operation for Getting<Q> {
    type Output = Result<T, QueueError>;

    fn attempt(&mut self) -> Option<Self::Output> {
        match self.queue.take() {
            Ok(item) => Some(Ok(item)),
            Err(Refusal::Wait) => None,
            Err(Refusal::Closed) => Some(Err(QueueError::Closed)),
        }
    }

    fn join(&mut self, waiter: Waiter) -> Option<Self::Output> {
        let Getting { queue, number } = self;
        let fate = queue.work(|core, head, after| match *number {
            Some(number) => match core.look_at_get(number, after) {
                Fate::Waits => {
                    core.rewake_get(number, waiter, after);
                    Fate::Waits
                }
                fate => fate,
            },
            None => match core.try_get(head) {
                Ok(item) => Fate::Done(item),
                Err(Refusal::Closed) => Fate::Closed(()),
                Err(Refusal::Wait) => {
                    *number = Some(core.join_gets(waiter));
                    Fate::Waits
                }
            },
        });
        self.outcome(fate)
    }

    fn look(&mut self) -> Option<Self::Output> {
        let number = self.number.expect("who looks stands in line");
        let fate = self.queue.work(|core, _, after| core.look_at_get(number, after));
        self.outcome(fate)
    }

    fn leave(&mut self, why: QueueError) -> (Self::Output, Option<QueueError>) {
        self.forget();
        (Err(why), None)
    }

    fn forget(&mut self) {
        if let Some(number) = self.number.take() {
            self.queue.work(|core, head, after| core.leave_gets(number, head, after));
        }
    }
}

impl<Q> Getting<Q> {
    fn outcome<T>(&mut self, fate: Fate<T, ()>) -> Option<Result<T, QueueError>> {
        let outcome = match fate {
            Fate::Waits => return None,
            Fate::Done(item) => Ok(item),
            Fate::Closed(()) => Err(QueueError::Closed),
        };
        self.number = None;
        Some(outcome)
    }
}
