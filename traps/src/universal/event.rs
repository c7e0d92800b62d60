//! The universal event: a flag that tasks and threads can wait for.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use super::error::QueueError;
use super::waiter::{Mutex, Operation, TaskWait, Waiter, after, block};
use crate::interrupt::Interrupt;

/// A flag that tasks and threads set and wait for. Once set it stays set, until it is cleared.
///
/// Clones are the same event; send one to a thread. Who waits when it is set is woken, in the order
/// in which they came, and stays woken though it is cleared at once. Whoever gives up leaves
/// nothing behind.
///
/// On the simulated machine a wait for a real thread is marked with
/// [`external`](WaitEvent::external).
///
/// ```no_run
/// # async fn example() -> Result<(), traps::Interrupt> {
/// use traps::universal::UniversalEvent;
///
/// let ready = UniversalEvent::new();
/// let theirs = ready.clone();
/// std::thread::spawn(move || theirs.set());
/// ready.wait().await
/// # }
/// ```
#[derive(Clone, Default)]
pub struct UniversalEvent {
    flag: Arc<Mutex<Flag>>,
}

#[derive(Default)]
struct Flag {
    set: bool,
    /// The number that was given out last.
    last: u64,
    /// By number.
    waiting: VecDeque<(u64, Waiter)>,
}

impl Flag {
    fn place_of(&self, number: u64) -> Option<usize> {
        self.waiting.binary_search_by_key(&number, |(found, _)| *found).ok()
    }
}

impl fmt::Debug for UniversalEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UniversalEvent").field("set", &self.is_set()).finish_non_exhaustive()
    }
}

impl UniversalEvent {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> UniversalEvent {
        UniversalEvent::default()
    }

    /// Works on the flag under its lock, under which nothing foreign runs.
    fn with<R>(&self, work: impl FnOnce(&mut Flag) -> R) -> R {
        work(&mut self.flag.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets it and wakes all who wait, in the order in which they came. From anywhere; never
    /// blocks.
    pub fn set(&self) {
        let woken = self.with(|flag| {
            flag.set = true;
            std::mem::take(&mut flag.waiting)
        });
        woken.into_iter().for_each(|(_, waiter)| waiter.wake());
    }

    /// Takes it back. From anywhere; never blocks.
    pub fn clear(&self) {
        self.with(|flag| flag.set = false);
    }

    /// Whether it is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.with(|flag| flag.set)
    }

    /// How many wait. For tests and reports: it may have changed meanwhile.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.with(|flag| flag.waiting.len())
    }

    /// Waits until it is set. *Blocks* the task unless it is.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait.
    #[track_caller]
    pub fn wait(&self) -> WaitEvent {
        let operation = Waiting { event: self.clone(), number: None };
        WaitEvent { wait: TaskWait::here("event_wait"), operation }
    }

    /// Waits until it is set. Blocks this thread unless it is.
    ///
    /// # Panics
    ///
    /// Inside a task; and if it has to wait on a thread on which a kernel runs.
    pub fn wait_blocking(&self) {
        let ended = block(&mut Waiting { event: self.clone(), number: None }, None);
        debug_assert!(ended.is_ok(), "nothing but the event ends this wait");
    }

    /// The same, for no longer than `span`, in real time. Whether it was set.
    ///
    /// # Panics
    ///
    /// As [`UniversalEvent::wait_blocking`].
    pub fn wait_blocking_timeout(&self, span: Duration) -> bool {
        block(&mut Waiting { event: self.clone(), number: None }, after(span)).is_ok()
    }
}

/// A wait under way.
struct Waiting {
    event: UniversalEvent,
    number: Option<u64>,
}

impl Operation for Waiting {
    type Output = Result<(), QueueError>;

    fn attempt(&mut self) -> Option<Self::Output> {
        self.event.is_set().then_some(Ok(()))
    }

    fn join(&mut self, waiter: Waiter) -> Option<Self::Output> {
        let Waiting { event, number } = self;
        let stale = event.with(|flag| match *number {
            Some(number) => match flag.place_of(number) {
                Some(place) => Ok(Some(std::mem::replace(&mut flag.waiting[place].1, waiter))),
                None => Err(waiter),
            },
            None if flag.set => Err(waiter),
            None => {
                flag.last += 1;
                flag.waiting.push_back((flag.last, waiter));
                *number = Some(flag.last);
                Ok(None)
            }
        });
        if stale.is_err() {
            *number = None;
        }
        stale.is_err().then_some(Ok(()))
    }

    fn look(&mut self) -> Option<Self::Output> {
        let number = self.number.expect("who looks stands in line");
        // Who is not in line any more was woken, whatever has become of the flag since.
        if self.event.with(|flag| flag.place_of(number)).is_some() {
            return None;
        }
        self.number = None;
        Some(Ok(()))
    }

    fn leave(&mut self, why: QueueError) -> (Self::Output, Option<QueueError>) {
        self.forget();
        (Err(why), None)
    }

    fn forget(&mut self) {
        let Some(number) = self.number.take() else { return };
        let left = self.event.with(|flag| {
            let place = flag.place_of(number)?;
            flag.waiting.remove(place)
        });
        drop(left);
    }
}

/// The future of [`UniversalEvent::wait`].
///
/// Dropped while it waits, it leaves the line as if it had never been in it.
#[must_use = "futures do nothing unless awaited"]
pub struct WaitEvent {
    wait: TaskWait,
    operation: Waiting,
}

impl WaitEvent {
    /// A real thread will set it: a virtual clock stands still until one does.
    pub fn external(mut self) -> WaitEvent {
        self.wait.external();
        self
    }
}

impl fmt::Debug for WaitEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitEvent").field("wait", &self.wait).finish_non_exhaustive()
    }
}

impl Future for WaitEvent {
    type Output = Result<(), Interrupt>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let WaitEvent { wait, operation } = &mut *self;
        wait.poll(cx, operation).map_err(|error| match error {
            QueueError::Interrupt(interrupt) => interrupt,
            other => unreachable!("rule: a task's wait ends early by an interrupt only: {other:?}"),
        })
    }
}

impl Drop for WaitEvent {
    fn drop(&mut self) {
        self.wait.forget(&mut self.operation);
    }
}
