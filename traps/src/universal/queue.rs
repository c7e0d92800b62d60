//! The universal queue: a handle of its [two locks](super::locked), and the operations on it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::core::Refusal;
use super::error::{PutError, QueueError};
use super::locked::Locked;
use super::operations::{Getting, Putting, Shared};
use super::waiter::{TaskWait, after, block};

/// A bounded queue between tasks and threads, in both directions: first in, first out.
///
/// Clones are the same queue; send one to a thread. Tasks await [`put`](UniversalQueue::put) and
/// [`get`](UniversalQueue::get); threads block in [`put_blocking`](UniversalQueue::put_blocking)
/// and [`get_blocking`](UniversalQueue::get_blocking). An operation that need not wait makes no
/// trap and no system call: it takes one operation from the task's budget, and a lock, which
/// whoever puts and whoever takes mostly do not share.
///
/// Tasks and threads stand in one line for items and one for room. What comes is handed to the
/// first in line, and nobody overtakes (Curio S4, S5). An item counts until it is in its taker's
/// hands, so the bound is exact. An item is lost to no interrupt: a get that gives up gives back
/// what it was handed, to where it was in the order (so it may come after a younger one that
/// somebody else was handed meanwhile); a put that gives up has its item in the error.
/// Whoever gives up leaves nothing in the line (Curio D12).
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
    shared: Arc<Shared<T>>,
}

impl<T> Clone for UniversalQueue<T> {
    fn clone(&self) -> UniversalQueue<T> {
        UniversalQueue { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for UniversalQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, closed) = self.shared.work(|core, _, _| (core.len(), core.is_closed()));
        f.debug_struct("UniversalQueue").field("len", &len).field("closed", &closed).finish()
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
        UniversalQueue { shared: Arc::new(Locked::new(n)) }
    }

    /// Items that were put and not taken; those on their way to a get that waited count.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.work(|core, _, _| core.len())
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many puts and gets wait. For tests and reports: it may have changed meanwhile.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.work(|core, _, _| core.waiting())
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.work(|core, _, _| core.is_closed())
    }

    /// Takes no put any more. Puts that wait get their items back; gets take what is there, and
    /// are refused once that is taken. Closing twice is closing once.
    pub fn close(&self) {
        self.shared.work(|core, _, after| core.close(after));
    }

    /// Puts an item if there is room. From anywhere; never blocks.
    ///
    /// # Errors
    ///
    /// The item, and [`QueueError::Full`] or [`QueueError::Closed`].
    pub fn try_put(&self, item: T) -> Result<(), PutError<T>> {
        let mut item = Some(item);
        self.shared.offer(&mut item).map_err(|refusal| {
            let full = refusal == Refusal::Wait;
            PutError { item, why: if full { QueueError::Full } else { QueueError::Closed } }
        })
    }

    /// Takes the oldest item that is nobody's yet. From anywhere; never blocks.
    ///
    /// # Errors
    ///
    /// [`QueueError::Empty`] or [`QueueError::Closed`].
    pub fn try_get(&self) -> Result<T, QueueError> {
        self.shared.take().map_err(|refusal| match refusal {
            Refusal::Wait => QueueError::Empty,
            Refusal::Closed => QueueError::Closed,
        })
    }

    /// Puts an item. *Blocks* the task while there is no room.
    ///
    /// An interrupt that comes when the item is in and untouched takes it back; once somebody has
    /// the item the put is done, and the interrupt is for the task's next blocking trap.
    ///
    /// # Errors
    ///
    /// The item, and [`QueueError::Interrupt`] or [`QueueError::Closed`].
    #[track_caller]
    pub fn put(&self, item: T) -> Put<T> {
        let operation = Putting::new(self.shared.clone(), item);
        Put { wait: TaskWait::here("queue_put"), operation }
    }

    /// Takes the oldest item. *Blocks* the task while there is none.
    ///
    /// # Errors
    ///
    /// [`QueueError::Interrupt`] or [`QueueError::Closed`].
    #[track_caller]
    pub fn get(&self) -> Get<T> {
        let operation = Getting::new(self.shared.clone());
        Get { wait: TaskWait::here("queue_get"), operation }
    }

    /// Puts an item. Blocks this thread while there is no room.
    ///
    /// # Errors
    ///
    /// The item, and [`QueueError::Closed`].
    ///
    /// # Panics
    ///
    /// Inside a task; and if it has to wait on a thread on which a kernel runs.
    pub fn put_blocking(&self, item: T) -> Result<(), PutError<T>> {
        block(&mut Putting::new(&*self.shared, item), None)
    }

    /// The same, for no longer than `span`, in real time.
    ///
    /// # Errors
    ///
    /// The item, and [`QueueError::TimedOut`] or [`QueueError::Closed`].
    ///
    /// # Panics
    ///
    /// As [`UniversalQueue::put_blocking`].
    pub fn put_blocking_timeout(&self, item: T, span: Duration) -> Result<(), PutError<T>> {
        block(&mut Putting::new(&*self.shared, item), after(span))
    }

    /// Takes the oldest item. Blocks this thread while there is none.
    ///
    /// # Errors
    ///
    /// [`QueueError::Closed`].
    ///
    /// # Panics
    ///
    /// As [`UniversalQueue::put_blocking`].
    pub fn get_blocking(&self) -> Result<T, QueueError> {
        block(&mut Getting::new(&*self.shared), None)
    }

    /// The same, for no longer than `span`, in real time.
    ///
    /// # Errors
    ///
    /// [`QueueError::TimedOut`] or [`QueueError::Closed`].
    ///
    /// # Panics
    ///
    /// As [`UniversalQueue::put_blocking`].
    pub fn get_blocking_timeout(&self, span: Duration) -> Result<T, QueueError> {
        block(&mut Getting::new(&*self.shared), after(span))
    }
}

macro_rules! future {
    ($(#[$doc:meta])* $name:ident, $operation:ty, $output:ty) => {
        $(#[$doc])*
        ///
        /// Dropped while it waits, it leaves the line as if it had never been in it.
        #[must_use = "futures do nothing unless awaited"]
        pub struct $name<T> {
            wait: TaskWait,
            operation: $operation,
        }

        impl<T> $name<T> {
            /// A real thread will end the wait: a virtual clock stands still until one does.
            pub fn external(mut self) -> $name<T> {
                self.wait.external();
                self
            }
        }

        impl<T> Unpin for $name<T> {}

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("wait", &self.wait).finish_non_exhaustive()
            }
        }

        impl<T> Future for $name<T> {
            type Output = $output;

            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                let $name { wait, operation } = &mut *self;
                wait.poll(cx, operation)
            }
        }

        impl<T> Drop for $name<T> {
            fn drop(&mut self) {
                self.wait.forget(&mut self.operation);
            }
        }
    };
}

future! {
    /// The future of [`UniversalQueue::put`].
    Put, Putting<T>, Result<(), PutError<T>>
}

future! {
    /// The future of [`UniversalQueue::get`].
    Get, Getting<Arc<Shared<T>>>, Result<T, QueueError>
}
