//! A channel with many senders and many receivers. Each receiver gets each item that is sent after
//! it subscribed.
//!
//! A send never waits. The channel keeps only the newest items, so a slow receiver misses the
//! oldest ones. It then gets [`Error::Lagged`] with the number of missed items, and continues with
//! the oldest item that is kept. If a task sends more items in one run than the channel
//! keeps, every receiver misses some, because no other task runs in between. Such a task calls
//! [`yield_now`](crate::yield_now) after each send.
//!
//! ```
//! use traps::channel::broadcast;
//! use traps::{Error, spawn};
//!
//! # testing::run(async {
//! let (news, mut receiver) = broadcast::channel(2);
//! let mut reader = spawn("reader", async move {
//!     let mut read = Vec::new();
//!     loop {
//!         match receiver.recv().await {
//!             Ok(item) => read.push(item),
//!             Err(Error::Lagged(missed)) => read.push(format!("{missed} missed")),
//!             Err(_senders_gone) => return read,
//!         }
//!     }
//! })
//! .await;
//! for n in 1..=4 {
//!     news.send(format!("item {n}")).unwrap();
//! }
//! drop(news);
//! assert_eq!(reader.join().await.unwrap(), ["2 missed", "item 3", "item 4"]);
//! # });
//! ```

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::Location;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::{Content, ReceiverOf, SenderOf, ends, queue_of};
use crate::{Error, Rejected};

/// Sends items to all receivers of a channel. Clones send to the same receivers.
///
/// ```
/// use traps::channel::broadcast;
///
/// let (sender, mut receiver) = broadcast::channel(16);
/// let clone: broadcast::Sender<&str> = sender.clone();
/// drop(sender);
/// clone.send("hello").unwrap(); // the channel is open as long as one sender exists
/// assert_eq!(receiver.try_recv(), Ok("hello"));
/// ```
#[derive(Clone)]
pub struct Sender<T: Clone>(SenderOf<RefCell<Newest<T>>>);

/// Receives the items of a channel. A clone continues at the same item;
/// [`subscribe`](Sender::subscribe) makes a receiver for new items only.
///
/// ```
/// use traps::channel::broadcast;
///
/// let (sender, mut one) = broadcast::channel(16);
/// sender.send(7).unwrap();
/// let mut two: broadcast::Receiver<u32> = one.clone();
/// assert_eq!((one.try_recv(), two.try_recv()), (Ok(7), Ok(7)));
/// ```
#[derive(Clone)]
pub struct Receiver<T: Clone>(ReceiverOf<RefCell<Newest<T>>>);

/// The content of a channel: its newest items.
struct Newest<T> {
    /// The items, each in an `Rc`, so that an item is cloned for its receiver while nothing is
    /// borrowed.
    items: VecDeque<Rc<T>>,
    /// The number of the oldest item in `items`.
    first: u64,
    capacity: usize,
}

/// Makes a channel that keeps the newest `n` items, and its first receiver.
///
/// ```
/// use traps::Error;
///
/// let (sender, mut receiver) = traps::channel::broadcast::channel(1);
/// [7, 8].map(|item| sender.send(item).unwrap());
/// assert_eq!(receiver.try_recv(), Err(Error::Lagged(1)));
/// assert_eq!(receiver.try_recv(), Ok(8));
/// ```
///
/// # Panics
///
/// Panics if `n` is zero.
#[track_caller]
pub fn channel<T: Clone>(n: usize) -> (Sender<T>, Receiver<T>) {
    named("", n)
}

/// Makes a channel like [`channel`], with a name for the log.
///
/// ```
/// use traps::channel::broadcast;
///
/// # let ran = testing::run(async {
/// let (sender, mut receiver) = broadcast::named("news", 16);
/// let send = async { sender.send(7) };
/// // The receiver waits first: the log has `broadcast news`.
/// let (received, _) = traps::join(receiver.recv(), send).await;
/// assert_eq!(received, Ok(7));
/// # });
/// # assert!(ran.trace.contains("broadcast news"), "{}", ran.trace);
/// ```
///
/// # Panics
///
/// Panics if `n` is zero.
#[track_caller]
pub fn named<T: Clone>(name: impl Into<Cow<'static, str>>, n: usize) -> (Sender<T>, Receiver<T>) {
    assert!(n > 0, "rule: a broadcast channel keeps one item at least");
    let newest = Newest { items: VecDeque::new(), first: 0, capacity: n };
    let (sender, receiver) = ends(queue_of("broadcast", name), RefCell::new(newest));
    (Sender(sender), Receiver(receiver))
}

handles!([: Clone], T, "broadcast::channel::<u32>(16)");

impl<T: Clone> Content for RefCell<Newest<T>> {
    type Item = T;

    fn receive(&self, at: &mut u64) -> Result<T, Error> {
        let newest = self.borrow();
        if let Some(missed @ 1..) = newest.first.checked_sub(*at) {
            *at = newest.first;
            return Err(Error::Lagged(missed));
        }
        let index = usize::try_from(*at - newest.first).unwrap_or(usize::MAX);
        let item = newest.items.get(index).cloned().ok_or(Error::Empty)?;
        drop(newest);
        *at += 1;
        Ok(Rc::unwrap_or_clone(item))
    }
}

impl<T: Clone> Sender<T> {
    /// Sends an item to all receivers. Never blocks. The channel keeps the item until newer ones
    /// replace it.
    ///
    /// ```
    /// let (sender, mut one) = traps::channel::broadcast::channel(16);
    /// let mut two = sender.subscribe();
    /// sender.send("hello").unwrap();
    /// assert_eq!((one.try_recv(), two.try_recv()), (Ok("hello"), Ok("hello")));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::ReceiversGone`] if there is no receiver now.
    pub fn send(&self, item: T) -> Result<(), Rejected<T>> {
        if self.is_closed() {
            return Err(Rejected { item: Some(item), why: Error::ReceiversGone });
        }
        let mut newest = self.0.channel.content.borrow_mut();
        newest.items.push_back(Rc::new(item));
        let is_over = newest.items.len() > newest.capacity;
        newest.first += u64::from(is_over);
        let oldest = if is_over { newest.items.pop_front() } else { None };
        drop(newest);
        // Wake before the drop of the oldest item runs user code, which can panic.
        self.0.channel.queue.wake(u64::MAX);
        drop(oldest);
        Ok(())
    }

    /// Makes a new receiver for the items that are sent from now on.
    ///
    /// ```
    /// let (sender, _first) = traps::channel::broadcast::channel(16);
    /// sender.send("before").unwrap();
    /// let mut late = sender.subscribe();
    /// sender.send("after").unwrap();
    /// assert_eq!(late.try_recv(), Ok("after"));
    /// ```
    pub fn subscribe(&self) -> Receiver<T> {
        let newest = self.0.channel.content.borrow();
        let next = newest.first + newest.items.len() as u64;
        Receiver(ReceiverOf::new(&self.0.channel, next))
    }
}

impl<T: Clone> Receiver<T> {
    /// Receives the next item. *Blocks* while there is none. If this future is dropped, it has
    /// received nothing.
    ///
    /// ```
    /// use traps::channel::broadcast;
    /// use traps::{Error, spawn};
    ///
    /// # testing::run(async {
    /// let (sender, mut receiver) = broadcast::channel(16);
    /// spawn("sender", async move { sender.send(7) }).detached().await;
    /// assert_eq!(receiver.recv().await, Ok(7));
    /// assert_eq!(receiver.recv().await, Err(Error::SendersGone));
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Lagged`] if items were replaced before this receiver had them. The next
    /// receive continues with the oldest item that is kept. Returns [`Error::SendersGone`] or
    /// [`Error::Interrupt`].
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Result<T, Error>> {
        self.0.recv_from(Location::caller())
    }
}
