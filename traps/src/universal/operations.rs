//! A put and a get, step by step: the same for tasks and threads.

use super::core::{Fate, Refusal};
use super::error::{PutError, QueueError};
use super::queue::UniversalQueue;
use super::waiter::{Operation, Waiter};

/// A put under way.
pub(super) struct Putting<T> {
    queue: UniversalQueue<T>,
    /// Here until it is in the queue or in the line.
    item: Option<T>,
    /// Its number in the line.
    number: Option<u64>,
}

impl<T> Putting<T> {
    pub(super) fn new(queue: &UniversalQueue<T>, item: T) -> Putting<T> {
        Putting { queue: queue.clone(), item: Some(item), number: None }
    }
}

impl<T> Operation for Putting<T> {
    type Output = Result<(), PutError<T>>;

    fn attempt(&mut self) -> Option<Self::Output> {
        let Putting { queue, item, .. } = self;
        match queue.with(|core, after| core.try_put(item, after)) {
            Ok(()) => Some(Ok(())),
            Err(Refusal::Wait) => None,
            Err(Refusal::Closed) => {
                Some(Err(PutError { item: item.take(), why: QueueError::Closed }))
            }
        }
    }

    fn join(&mut self, waiter: Waiter) -> Option<Self::Output> {
        let Putting { queue, item, number } = self;
        let fate = queue.with(|core, after| match *number {
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
        let fate = self.queue.with(|core, after| core.look_at_put(number, after));
        self.outcome(fate)
    }

    fn leave(&mut self, why: QueueError) -> (Self::Output, Option<QueueError>) {
        let item = match self.number.take() {
            Some(number) => self.queue.with(|core, after| core.take_back(number, after)),
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
            drop(self.queue.with(|core, after| core.leave_puts(number, after)));
        }
    }
}

impl<T> Putting<T> {
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
pub(super) struct Getting<T> {
    queue: UniversalQueue<T>,
    /// Its number in the line.
    number: Option<u64>,
}

impl<T> Getting<T> {
    pub(super) fn new(queue: &UniversalQueue<T>) -> Getting<T> {
        Getting { queue: queue.clone(), number: None }
    }
}

impl<T> Operation for Getting<T> {
    type Output = Result<T, QueueError>;

    fn attempt(&mut self) -> Option<Self::Output> {
        match self.queue.with(|core, after| core.try_get(after)) {
            Ok(item) => Some(Ok(item)),
            Err(Refusal::Wait) => None,
            Err(Refusal::Closed) => Some(Err(QueueError::Closed)),
        }
    }

    fn join(&mut self, waiter: Waiter) -> Option<Self::Output> {
        let Getting { queue, number } = self;
        let fate = queue.with(|core, after| match *number {
            Some(number) => match core.look_at_get(number, after) {
                Fate::Waits => {
                    core.rewake_get(number, waiter, after);
                    Fate::Waits
                }
                fate => fate,
            },
            None => match core.try_get(after) {
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
        let fate = self.queue.with(|core, after| core.look_at_get(number, after));
        self.outcome(fate)
    }

    fn leave(&mut self, why: QueueError) -> (Self::Output, Option<QueueError>) {
        self.forget();
        (Err(why), None)
    }

    fn forget(&mut self) {
        if let Some(number) = self.number.take() {
            self.queue.with(|core, after| core.leave_gets(number, after));
        }
    }
}

impl<T> Getting<T> {
    fn outcome(&mut self, fate: Fate<T, ()>) -> Option<Result<T, QueueError>> {
        let outcome = match fate {
            Fate::Waits => return None,
            Fate::Done(item) => Ok(item),
            Fate::Closed(()) => Err(QueueError::Closed),
        };
        self.number = None;
        Some(outcome)
    }
}
