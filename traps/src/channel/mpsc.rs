//! A channel with many senders and one receiver. First in, first out.
//!
//! ```
//! use traps::channel::mpsc;
//! use traps::{Error, spawn};
//!
//! # testing::run(async {
//! let (jobs, mut receiver) = mpsc::channel(16);
//! spawn("producer", async move {
//!     for n in 0..100 {
//!         jobs.send(n).await?; // waits while there is no room
//!     }
//!     Ok::<(), Error>(())
//! })
//! .detached()
//! .await;
//!
//! let mut sum = 0;
//! let end = loop {
//!     match receiver.recv().await {
//!         Ok(n) => sum += n,
//!         Err(error) => break error,
//!     }
//! };
//! assert_eq!((sum, end), (4950, Error::SendersGone));
//! # });
//! ```

use std::borrow::Cow;
use std::panic::Location;
use std::task::{Context, Poll};

use super::queue::{Buffer, Fifo};
use super::{ReceiverOf, SenderOf, ends};
use crate::{Error, Rejected};

/// Sends items into a channel. Clones send to the same receiver.
///
/// ```
/// use traps::channel::mpsc;
///
/// let (sender, receiver) = mpsc::channel(16);
/// let clone: mpsc::Sender<&str> = sender.clone();
/// sender.try_send("one").unwrap();
/// clone.try_send("two").unwrap();
/// assert_eq!(receiver.len(), 2);
/// ```
pub struct Sender<T>(SenderOf<Buffer<T, Fifo>>);

/// Receives the items of a channel. Dropping it drops the items that were not received.
///
/// ```
/// use traps::Error;
/// use traps::channel::mpsc;
///
/// /// Takes the items that are there now.
/// fn drain(receiver: &mut mpsc::Receiver<u32>) -> Vec<u32> {
///     std::iter::from_fn(|| receiver.try_recv().ok()).collect()
/// }
///
/// let (sender, mut receiver) = mpsc::channel(16);
/// (1..=3).for_each(|n| sender.try_send(n).unwrap());
/// assert_eq!(drain(&mut receiver), [1, 2, 3]);
/// drop(receiver);
/// assert_eq!(sender.try_send(4).unwrap_err().why, Error::ReceiversGone);
/// ```
pub struct Receiver<T>(ReceiverOf<Buffer<T, Fifo>>);

/// Makes a channel that holds at most `bound` items.
///
/// ```
/// use traps::channel::mpsc;
///
/// let (sender, mut receiver) = mpsc::channel(1);
/// assert!(sender.try_send("first").is_ok());
/// assert!(sender.try_send("second").is_err());
/// assert_eq!(receiver.try_recv(), Ok("first"));
/// ```
///
/// # Panics
///
/// Panics if `bound` is zero, because no item could ever be sent.
#[track_caller]
pub fn channel<T>(bound: usize) -> (Sender<T>, Receiver<T>) {
    named("", bound)
}

/// Makes a channel without a bound. A send never waits, so a slow receiver lets the channel grow.
///
/// ```
/// use traps::channel::mpsc;
///
/// let (sender, receiver) = mpsc::unbounded();
/// (0..1000).for_each(|n| sender.try_send(n).expect("there is always room"));
/// assert_eq!((receiver.len(), sender.capacity()), (1000, usize::MAX));
/// ```
#[track_caller]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    named("", usize::MAX)
}

/// Makes a channel like [`channel`], with a name for the log. A bound above `u32::MAX` counts as
/// none.
///
/// ```
/// use traps::channel::mpsc;
///
/// # let ran = testing::run(async {
/// let (sender, mut receiver) = mpsc::named("jobs", 16);
/// let send = async { sender.send(7).await };
/// // The receiver waits first: the log has `mpsc jobs`.
/// let (received, _) = traps::join(receiver.recv(), send).await;
/// assert_eq!(received, Ok(7));
/// # });
/// # assert!(ran.trace.contains("mpsc jobs"), "{}", ran.trace);
/// ```
///
/// # Panics
///
/// Panics if `bound` is zero.
#[track_caller]
pub fn named<T>(name: impl Into<Cow<'static, str>>, bound: usize) -> (Sender<T>, Receiver<T>) {
    let buffer = Buffer::new("mpsc", name.into(), bound);
    let (sender, receiver) = ends(buffer.ready.clone(), buffer);
    (Sender(sender), Receiver(receiver))
}

handles!([], T, "mpsc::channel::<u32>(16)");

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender(self.0.clone())
    }
}

impl<T> Sender<T> {
    /// Sends an item. *Blocks* while there is no room. If this future is dropped, it has sent
    /// nothing, and the item is dropped with it.
    ///
    /// ```
    /// use traps::Error;
    /// use traps::channel::mpsc;
    ///
    /// # testing::run(async {
    /// let (sender, mut receiver) = mpsc::channel(16);
    /// sender.send(7).await.unwrap();
    /// assert_eq!(receiver.recv().await, Ok(7));
    ///
    /// drop(receiver);
    /// let rejected = sender.send(8).await.unwrap_err();
    /// assert_eq!((rejected.item, rejected.why), (Some(8), Error::ReceiversGone));
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::ReceiversGone`] or [`Error::Interrupt`].
    #[track_caller]
    pub fn send(&self, item: T) -> impl Future<Output = Result<(), Rejected<T>>> {
        let site = Location::caller();
        async move {
            let buffer = &self.0.channel.content;
            let waited = if self.is_closed() { Ok(()) } else { buffer.wait_for_room(site).await };
            let why = match waited {
                Err(interrupt) => Error::from(interrupt),
                // The channel can also have been closed during the wait.
                Ok(()) if self.is_closed() => Error::ReceiversGone,
                Ok(()) => {
                    buffer.push(item);
                    return Ok(());
                }
            };
            Err(Rejected { item: Some(item), why })
        }
    }

    /// Sends an item if there is free room. Room is not free if a task waits for it.
    ///
    /// ```
    /// use traps::Error;
    /// use traps::channel::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel(1);
    /// sender.try_send(7).unwrap();
    /// let rejected = sender.try_send(8).unwrap_err();
    /// assert_eq!((rejected.item, rejected.why), (Some(8), Error::Full));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::Full`] or [`Error::ReceiversGone`].
    pub fn try_send(&self, item: T) -> Result<(), Rejected<T>> {
        let buffer = &self.0.channel.content;
        if self.is_closed() {
            return Err(Rejected { item: Some(item), why: Error::ReceiversGone });
        }
        buffer.try_push(item)
    }

    /// Returns the largest number of items that fit. It is `usize::MAX` without a bound.
    ///
    /// ```
    /// let (sender, _receiver) = traps::channel::mpsc::channel::<u32>(16);
    /// assert_eq!(sender.capacity(), 16);
    /// ```
    pub fn capacity(&self) -> usize {
        self.0.channel.content.bound
    }

    /// Returns whether there is no room left.
    ///
    /// ```
    /// let (sender, _receiver) = traps::channel::mpsc::channel(1);
    /// sender.try_send(7).unwrap();
    /// assert!(sender.is_full());
    /// ```
    pub fn is_full(&self) -> bool {
        self.0.channel.content.is_full()
    }
}

impl<T> Receiver<T> {
    /// Receives the next item. *Blocks* while there is none. If this future is dropped, it has
    /// received nothing.
    ///
    /// ```
    /// use traps::channel::mpsc;
    /// use traps::{Error, spawn};
    ///
    /// # testing::run(async {
    /// let (sender, mut receiver) = mpsc::channel(16);
    /// spawn("sender", async move { sender.send(7).await }).detached().await;
    /// assert_eq!(receiver.recv().await, Ok(7));
    /// assert_eq!(receiver.recv().await, Err(Error::SendersGone));
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::SendersGone`], [`Error::Closed`] if the receiver was
    /// [closed](Receiver::close), or [`Error::Interrupt`].
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Result<T, Error>> {
        self.0.recv_from(Location::caller())
    }

    /// Closes the receiver: each send from now on fails, and so does each waiting send. Items that
    /// were sent before can still be received. After them, a receive returns [`Error::Closed`],
    /// also to a task that polled the receiver before and still waits.
    ///
    /// ```
    /// use traps::Error;
    /// use traps::channel::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(16);
    /// sender.try_send(7).unwrap();
    /// receiver.close();
    /// assert!(sender.try_send(8).is_err());
    /// assert_eq!(receiver.try_recv(), Ok(7));
    /// assert_eq!(receiver.try_recv(), Err(Error::Closed));
    /// ```
    pub fn close(&mut self) {
        let channel = &self.0.channel;
        channel.receivers.set(0);
        channel.queue.wake(u64::MAX);
        channel.content.wake_senders();
    }

    /// Returns the number of items. An item on its way to a waiting receive counts.
    ///
    /// ```
    /// let (sender, receiver) = traps::channel::mpsc::channel(16);
    /// sender.try_send(7).unwrap();
    /// assert_eq!(receiver.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.0.channel.content.len()
    }

    /// Returns whether there are no items.
    ///
    /// ```
    /// let (_sender, receiver) = traps::channel::mpsc::channel::<u32>(16);
    /// assert!(receiver.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
