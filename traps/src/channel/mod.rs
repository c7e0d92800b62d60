//! Channels between the tasks of one kernel, and queues as in Curio. They are built from
//! [`WaitQueue`] alone.
//!
//! | module | senders | receivers | each item goes to |
//! |---|---|---|---|
//! | [`mpsc`] | many | one | the receiver |
//! | [`oneshot`] | one | one | the receiver; there is only one item |
//! | [`broadcast`] | many | many | each receiver that had subscribed before |
//! | [`watch`] | one | many | each receiver; only the newest value is kept |
//! | [`queue`] | any task | any task | the first task that takes it; each task can do both |
//!
//! All of them follow these rules:
//!
//! - An operation that need not wait makes no trap, so it cannot be interrupted.
//! - An interrupted or dropped operation has had no effect: it has received or sent nothing. The
//!   error of an interrupted send contains the item.
//! - Waiters are served in the order of arrival. No task overtakes another.
//! - A channel is closed once all its senders or all its receivers are gone. This wakes all
//!   waiters. A receiver first gets everything that was sent before, and then
//!   [`Error::SendersGone`]. A sender gets [`Error::ReceiversGone`].
//! - Each has a constructor `named`, which takes a name for the log and for the table of tasks.
//! - With the feature `stream`, a receiver is a stream from `futures_core`. The stream yields
//!   results, so that the task sees an interrupt. Ending the stream instead would hide the
//!   interrupt. Use `?` on each item, or the `try_` adapters: an adapter that drops errors swallows
//!   timeouts and cancellations.
//!
//! A sender, a receiver or a queue belongs to its thread. Between threads, use
//! [`universal`](crate::universal). The compiler's error names it, too:
//!
//! ```compile_fail,E0277
//! let (sender, _receiver) = traps::channel::mpsc::channel::<u32>(1);
//! std::thread::spawn(move || sender.try_send(1));
//! ```

use std::borrow::Cow;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::core::table::Site;
use crate::{Error, Interrupt, WaitInQueue, WaitQueue};

/// Defines the methods that the senders and receivers of all channels have. `$make` is a call that
/// makes such a channel, for the examples.
macro_rules! handles {
    ([$($bound:tt)*], $item:ty, $make:literal) => {
        impl<T $($bound)*> Sender<T> {
            /// Returns whether the channel is closed: its receivers are gone, or its only receiver
            /// was closed.
            ///
            /// ```
            #[doc = concat!("let (sender, receiver) = traps::channel::", $make, ";")]
            /// assert!(!sender.is_closed());
            /// drop(receiver);
            /// assert!(sender.is_closed());
            /// ```
            pub fn is_closed(&self) -> bool {
                self.0.channel.is_closed()
            }
        }

        impl<T $($bound)*> Receiver<T> {
            /// Returns whether the channel is closed: its senders are gone, or this receiver was
            /// closed. What was sent before can still be received.
            ///
            /// ```
            #[doc = concat!("let (sender, receiver) = traps::channel::", $make, ";")]
            /// assert!(!receiver.is_closed());
            /// drop(sender);
            /// assert!(receiver.is_closed());
            /// ```
            pub fn is_closed(&self) -> bool {
                self.0.channel.is_closed()
            }

            /// Receives without waiting.
            ///
            /// ```
            /// use traps::Error;
            ///
            #[doc = concat!("let (sender, mut receiver) = traps::channel::", $make, ";")]
            /// assert_eq!(receiver.try_recv(), Err(Error::Empty));
            /// drop(sender);
            /// assert_eq!(receiver.try_recv(), Err(Error::SendersGone));
            /// ```
            ///
            /// # Errors
            ///
            /// Returns [`Error::Empty`] if the receiver would have to wait. Otherwise, returns the
            /// errors of a receive that waits, except an interrupt.
            pub fn try_recv(&mut self) -> Result<$item, Error> {
                self.0.try_recv()
            }

            /// Polls for the next receive, for a hand-written future. While the result is
            /// `Pending`, the receiver itself waits in the queue, until something can be received
            /// or another receive begins. The log shows the call site that made the channel.
            ///
            /// ```
            /// use std::future::poll_fn;
            /// use traps::Error;
            ///
            /// # testing::run(async {
            #[doc = concat!("let (sender, mut receiver) = traps::channel::", $make, ";")]
            /// drop(sender);
            /// let received = poll_fn(|cx| receiver.poll_recv(cx)).await;
            /// assert_eq!(received, Err(Error::SendersGone));
            /// # });
            /// ```
            pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<$item, Error>> {
                self.0.poll_recv(cx)
            }
        }

        /// Yields the result of each receive until the channel is closed. Continues after an
        /// interrupt and after [`Error::Lagged`].
        #[cfg(feature = "stream")]
        impl<T $($bound)*> futures_core::Stream for Receiver<T> {
            type Item = Result<$item, Error>;

            fn poll_next(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<Option<Self::Item>> {
                self.poll_recv(cx).map(|received| match received {
                    Err(Error::SendersGone | Error::Closed) => None,
                    received => Some(received),
                })
            }
        }

        impl<T $($bound)*> std::fmt::Debug for Sender<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("Sender")
            }
        }

        impl<T $($bound)*> std::fmt::Debug for Receiver<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("Receiver")
            }
        }
    };
}

pub mod broadcast;
pub mod mpsc;
pub mod oneshot;
pub mod queue;
pub mod watch;

/// The content of a channel: what was sent and can still be received.
trait Content {
    /// The value that a receive returns.
    type Item;
    /// Returns the next item, or [`Error::Empty`]. `at` is the position of the receiver: the number
    /// of its next item, or of the version that it has seen.
    fn receive(&self, at: &mut u64) -> Result<Self::Item, Error>;
    /// Drops the items that no receiver will take, because the last receiver is gone.
    fn discard(&self) {}
}

/// A channel, which its senders and receivers share.
struct Channel<C> {
    content: C,
    /// The queue of tasks that wait for a change of the content, or for the close.
    queue: WaitQueue,
    senders: Cell<usize>,
    /// The number of receivers. Zero once the only receiver was closed.
    receivers: Cell<usize>,
    /// The call site that made the channel.
    site: Site,
}

impl<C> Channel<C> {
    fn is_closed(&self) -> bool {
        self.senders.get() == 0 || self.receivers.get() == 0
    }
}

/// A name for the compiler's error if a sender or a receiver is sent to another thread: use
/// [`UniversalQueue`](crate::universal::UniversalQueue) between threads.
trait UseTrapsUniversalQueueBetweenThreads: Unpin {}

/// The type that makes the compiler report [`UseTrapsUniversalQueueBetweenThreads`].
type OneThread = PhantomData<dyn UseTrapsUniversalQueueBetweenThreads>;

/// An `Rc` inside a type of its own, because the compiler would report a field of the type `Rc`
/// before it reports [`OneThread`].
struct LocalRc<T>(Rc<T>);

impl<T> Deref for LocalRc<T> {
    type Target = Rc<T>;

    fn deref(&self) -> &Rc<T> {
        &self.0
    }
}

/// A sender of a channel with the content `C`. It keeps the channel open for the receivers.
struct SenderOf<C> {
    one_thread: OneThread,
    channel: LocalRc<Channel<C>>,
}

/// A receiver of a channel with the content `C`. It keeps the channel open for the senders.
struct ReceiverOf<C: Content> {
    one_thread: OneThread,
    channel: LocalRc<Channel<C>>,
    /// The position of this receiver in the content; see [`Content::receive`].
    at: u64,
    /// The wait of a receiver that is polled as a stream or a future.
    wait: Option<WaitInQueue>,
}

fn queue_of(kind: &'static str, name: impl Into<Cow<'static, str>>) -> WaitQueue {
    WaitQueue::new().described(kind, name)
}

/// Makes a channel, its first sender and its first receiver.
#[track_caller]
fn ends<C: Content>(queue: WaitQueue, content: C) -> (SenderOf<C>, ReceiverOf<C>) {
    let (senders, receivers, site) = (Cell::new(0), Cell::new(0), Location::caller());
    let channel = Rc::new(Channel { content, queue, senders, receivers, site });
    (SenderOf::new(&channel), ReceiverOf::new(&channel, 0))
}

/// Waits in `queue` until `is_so` returns `true`.
async fn until(queue: &WaitQueue, site: Site, is_so: impl Fn() -> bool) -> Result<(), Interrupt> {
    while !is_so() {
        queue.wait_from(site).await?;
    }
    Ok(())
}

impl<C> SenderOf<C> {
    fn new(channel: &Rc<Channel<C>>) -> Self {
        channel.senders.update(|senders| senders + 1);
        SenderOf { one_thread: PhantomData, channel: LocalRc(channel.clone()) }
    }
}

impl<C> Clone for SenderOf<C> {
    fn clone(&self) -> Self {
        SenderOf::new(&self.channel)
    }
}

impl<C> Drop for SenderOf<C> {
    fn drop(&mut self) {
        let Channel { queue, senders, .. } = &**self.channel;
        senders.update(|senders| senders - 1);
        if senders.get() == 0 {
            queue.wake(u64::MAX);
        }
    }
}

impl<C: Content> ReceiverOf<C> {
    fn new(channel: &Rc<Channel<C>>, at: u64) -> Self {
        channel.receivers.update(|receivers| receivers + 1);
        ReceiverOf { one_thread: PhantomData, channel: LocalRc(channel.clone()), at, wait: None }
    }

    async fn recv_from(&mut self, site: Site) -> Result<C::Item, Error> {
        // `poll_recv` may have left a wait of this receiver. It is earlier in the queue, so it
        // would take the wake-up that the new wait needs.
        self.wait = None;
        loop {
            match self.try_recv() {
                Err(Error::Empty) => self.channel.queue.wait_from(site).await?,
                received => return received,
            }
        }
    }

    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<C::Item, Error>> {
        loop {
            if let Some(wait) = &mut self.wait {
                let ended = Pin::new(wait).poll(cx);
                // If the channel was closed in the meantime, there is nothing to wait for.
                if ended.is_pending() && !self.channel.is_closed() {
                    return Poll::Pending;
                }
                self.wait = None;
                if let Poll::Ready(ended) = ended {
                    ended?;
                }
            }
            match self.try_recv() {
                Err(Error::Empty) => {
                    self.wait = Some(self.channel.queue.wait_from(self.channel.site));
                }
                received => return Poll::Ready(received),
            }
        }
    }

    fn try_recv(&mut self) -> Result<C::Item, Error> {
        let Channel { content, senders, .. } = &**self.channel;
        content.receive(&mut self.at).map_err(|why| match why {
            Error::Empty if senders.get() == 0 => Error::SendersGone,
            Error::Empty if self.channel.is_closed() => Error::Closed,
            why => why,
        })
    }
}

impl<C: Content> Clone for ReceiverOf<C> {
    fn clone(&self) -> Self {
        ReceiverOf::new(&self.channel, self.at)
    }
}

impl<C: Content> Drop for ReceiverOf<C> {
    fn drop(&mut self) {
        let Channel { content, queue, receivers, .. } = &**self.channel;
        // A closed receiver no longer counts, so the count can be zero here.
        receivers.update(|receivers| receivers.saturating_sub(1));
        if receivers.get() == 0 {
            queue.wake(u64::MAX);
            content.discard();
        }
    }
}
