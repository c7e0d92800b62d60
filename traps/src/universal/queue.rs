//! The universal queue: items, and the two lines of those who wait.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::line::{Ended, Operation, Shared};
use super::waiting::{Output, Waiting, block};
use crate::core::protocol::Act;
use crate::error::{Error, Rejected};

/// A bounded queue between tasks and threads, in both directions: first in, first out.
///
/// Clones are the same queue; send one to a thread. Tasks await [`put`](UniversalQueue::put) and
/// [`get`](UniversalQueue::get); threads block in [`put_blocking`](UniversalQueue::put_blocking)
/// and [`get_blocking`](UniversalQueue::get_blocking). An operation that need not wait makes no
/// trap and no system call: it takes one operation from the task's budget, and a lock.
///
/// Tasks and threads stand in one line for items and one for room. What comes is handed to the
/// first in line, and nobody overtakes. An item counts until it is in its taker's hands, so the
/// bound is exact. An item is lost to no interrupt: a get that gives up gives back what it was
/// handed, to where it was in the order (so it may come after a younger one that somebody else was
/// handed meanwhile); a put that gives up has its item in the error. Whoever gives up leaves
/// nothing in the line.
///
/// On the simulated machine a wait for a real thread is marked with
/// [`external`](Get::external), so that the virtual clock stands still; between tasks of one
/// kernel all is as reproducible as with any trap.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use traps::universal::UniversalQueue;
///
/// let queue = UniversalQueue::bounded(16);
/// let theirs = queue.clone();
/// std::thread::spawn(move || {
///     for n in 0..100 {
///         theirs.put_blocking(n).expect("the queue is open");
///     }
///     theirs.close();
/// });
/// while let Ok(n) = queue.get().await {
///     println!("{n}");
/// }
/// # Ok(())
/// # }
/// ```
pub struct UniversalQueue<T> {
    queue: Arc<Shared<T>>,
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
    /// An empty queue that holds `n` items at most.
    ///
    /// # Panics
    ///
    /// If `n` is zero: nothing could ever be put.
    #[must_use]
    pub fn bounded(n: usize) -> UniversalQueue<T> {
        assert!(n > 0, "rule: a queue has room for one item at least");
        UniversalQueue { queue: Arc::new(Shared::new(n)) }
    }

    /// Items that were put and not taken; those on their way to a get that waited count.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.with(|state| state.len())
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many puts and gets wait. For tests and reports: it may have changed meanwhile.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.with(|state| state.puts.len() + state.gets.len())
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.with(|state| state.closed)
    }

    /// Takes no put any more. Puts that wait get their items back; gets take what is there, and
    /// are refused once that is taken. Closing twice is closing once.
    pub fn close(&self) {
        self.queue.with(|state| state.closed = true);
    }

    /// Takes puts again.
    pub(super) fn reopen(&self) {
        self.queue.with(|state| state.closed = false);
    }

    /// Puts an item if there is room. From anywhere; never blocks.
    ///
    /// # Errors
    ///
    /// The item, and [`Error::Full`] or [`Error::Closed`].
    pub fn try_put(&self, item: T) -> Result<(), Rejected<T>> {
        let mut put = Operation::put(item);
        let ended = self.queue.with(|state| state.attempt(&mut put));
        put_output(put.item, ended)
    }

    /// Takes the oldest item that is nobody's yet. From anywhere; never blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Empty`] or [`Error::Closed`].
    pub fn try_get(&self) -> Result<T, Error> {
        let mut get = Operation::get();
        let ended = self.queue.with(|state| state.attempt(&mut get));
        get_output(get.item, ended)
    }

    /// Puts an item. *Blocks* the task while there is no room.
    ///
    /// An interrupt that comes when the item is in and untouched takes it back; once somebody has
    /// the item the put is done, and the interrupt is for the task's next blocking trap.
    ///
    /// # Errors
    ///
    /// The item, and [`Error::Interrupt`] or [`Error::Closed`].
    #[track_caller]
    pub fn put(&self, item: T) -> Put<T> {
        Waiting::new(Act::Put, &self.queue, Operation::put(item), put_output)
    }

    /// Takes the oldest item. *Blocks* the task while there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupt`] or [`Error::Closed`].
    #[track_caller]
    pub fn get(&self) -> Get<T> {
        self.get_as(Act::Get, get_output)
    }

    /// A get that the log calls `what`.
    #[track_caller]
    pub(super) fn get_as<R>(&self, what: Act, output: Output<T, R>) -> Waiting<T, R> {
        Waiting::new(what, &self.queue, Operation::get(), output)
    }

    /// Puts an item. Blocks this thread while there is no room.
    ///
    /// # Errors
    ///
    /// The item, and [`Error::Closed`].
    ///
    /// # Panics
    ///
    /// Inside a task; and if it has to wait on a thread on which a kernel runs.
    pub fn put_blocking(&self, item: T) -> Result<(), Rejected<T>> {
        block(&self.queue, Operation::put(item), put_output, None)
    }

    /// The same, for no longer than `span`, in real time.
    ///
    /// # Errors
    ///
    /// The item, and [`Error::TimedOut`] or [`Error::Closed`].
    ///
    /// # Panics
    ///
    /// As [`UniversalQueue::put_blocking`].
    pub fn put_blocking_timeout(&self, item: T, span: Duration) -> Result<(), Rejected<T>> {
        block(&self.queue, Operation::put(item), put_output, Some(span))
    }

    /// Takes the oldest item. Blocks this thread while there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`].
    ///
    /// # Panics
    ///
    /// As [`UniversalQueue::put_blocking`].
    pub fn get_blocking(&self) -> Result<T, Error> {
        block(&self.queue, Operation::get(), get_output, None)
    }

    /// The same, for no longer than `span`, in real time.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] or [`Error::Closed`].
    ///
    /// # Panics
    ///
    /// As [`UniversalQueue::put_blocking`].
    pub fn get_blocking_timeout(&self, span: Duration) -> Result<T, Error> {
        block(&self.queue, Operation::get(), get_output, Some(span))
    }
}

/// The future of [`UniversalQueue::put`].
pub type Put<T> = Waiting<T, Result<(), Rejected<T>>>;

/// The future of [`UniversalQueue::get`].
pub type Get<T> = Waiting<T, Result<T, Error>>;

fn put_output<T>(item: Option<T>, ended: Ended) -> Result<(), Rejected<T>> {
    ended.map_err(|why| Rejected { item, why })
}

fn get_output<T>(item: Option<T>, ended: Ended) -> Result<T, Error> {
    ended.map(|()| item.expect("rule: a get that is done has an item"))
}
