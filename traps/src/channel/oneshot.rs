//! A channel for one value, from one sender to one receiver.
//!
//! ```
//! use traps::channel::oneshot;
//! use traps::spawn;
//!
//! # testing::run(async {
//! let (sender, receiver) = oneshot::channel();
//! spawn("answerer", async move { sender.send(42) }).detached().await;
//! assert_eq!(receiver.await, Ok(42));
//! # });
//! ```

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Content, ReceiverOf, SenderOf, ends, queue_of, until};
use crate::{Error, Interrupt};

/// Sends the value of a channel.
///
/// ```
/// use traps::Error;
/// use traps::channel::oneshot;
///
/// # testing::run(async {
/// let (sender, receiver): (oneshot::Sender<u32>, _) = oneshot::channel();
/// drop(sender); // without a value
/// assert_eq!(receiver.await, Err(Error::SendersGone));
/// # });
/// ```
pub struct Sender<T>(SenderOf<Cell<Option<T>>>);

/// Receives the value of a channel. It is also a future; then the log shows the call site that made
/// the channel. After it has returned the value, it returns only [`Error::SendersGone`].
///
/// ```
/// use traps::channel::oneshot;
///
/// /// A request, with the channel for its answer.
/// struct Request {
///     n: u32,
///     answer: oneshot::Sender<u32>,
/// }
///
/// fn ask(n: u32) -> (Request, oneshot::Receiver<u32>) {
///     let (answer, receiver) = oneshot::channel();
///     (Request { n, answer }, receiver)
/// }
///
/// # testing::run(async {
/// let (request, answer) = ask(7);
/// request.answer.send(request.n * 2).unwrap();
/// assert_eq!(answer.await, Ok(14));
/// # });
/// ```
pub struct Receiver<T>(ReceiverOf<Cell<Option<T>>>);

/// Makes a channel for one value.
///
/// ```
/// let (sender, mut receiver) = traps::channel::oneshot::channel();
/// sender.send(42).unwrap();
/// assert_eq!(receiver.try_recv(), Ok(42));
/// ```
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    named("")
}

/// Makes a channel like [`channel`], with a name for the log.
///
/// ```
/// use traps::channel::oneshot;
/// use traps::spawn;
///
/// # let ran = testing::run(async {
/// let (sender, receiver) = oneshot::named("answer");
/// spawn("answerer", async move { sender.send(42) }).detached().await;
/// assert_eq!(receiver.await, Ok(42)); // waits: the log has `oneshot answer`
/// # });
/// # assert!(ran.trace.contains("oneshot answer"), "{}", ran.trace);
/// ```
#[track_caller]
pub fn named<T>(name: impl Into<Cow<'static, str>>) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = ends(queue_of("oneshot", name), Cell::new(None));
    (Sender(sender), Receiver(receiver))
}

handles!([], T, "oneshot::channel::<u32>()");

impl<T> Content for Cell<Option<T>> {
    type Item = T;

    fn receive(&self, _: &mut u64) -> Result<T, Error> {
        self.take().ok_or(Error::Empty)
    }
}

impl<T> Sender<T> {
    /// Sends the value. Never blocks.
    ///
    /// ```
    /// let (sender, receiver) = traps::channel::oneshot::channel();
    /// drop(receiver);
    /// assert_eq!(sender.send(42), Err(42));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the value if the receiver is gone.
    pub fn send(self, value: T) -> Result<(), T> {
        if self.is_closed() {
            return Err(value);
        }
        self.0.channel.content.set(Some(value));
        // Dropping this sender wakes the receiver.
        Ok(())
    }

    /// Waits until the receiver is gone. *Blocks*, unless it is gone already. With
    /// [`race`](crate::race), a task can stop work whose result is no longer wanted.
    ///
    /// ```
    /// use std::time::Duration;
    /// use traps::channel::oneshot;
    /// use traps::{Either, race, sleep, timeout_after, spawn};
    ///
    /// # testing::run(async {
    /// let (sender, receiver) = oneshot::channel::<u32>();
    /// let mut worker = spawn("worker", async move {
    ///     let work = sleep(Duration::from_secs(60));
    ///     matches!(race(sender.closed(), work).await, Either::Left(Ok(())))
    /// })
    /// .await;
    /// // The receiver gives up after a second, and is dropped.
    /// timeout_after(Duration::from_secs(1), receiver).await.unwrap_err();
    /// assert!(worker.join().await.unwrap());
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait.
    #[track_caller]
    pub fn closed(&self) -> impl Future<Output = Result<(), Interrupt>> {
        until(&self.0.channel.queue, Location::caller(), || self.is_closed())
    }
}

impl<T> Receiver<T> {
    /// Receives the value, like `receiver.await`, but the log shows this call site. *Blocks* until
    /// there is one. If this future is dropped, it has received nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use traps::channel::oneshot;
    /// use traps::timeout_after;
    ///
    /// # testing::run(async {
    /// let (sender, mut receiver) = oneshot::channel();
    /// timeout_after(Duration::from_secs(1), receiver.recv()).await.unwrap_err();
    /// sender.send(42).unwrap(); // late, but not lost
    /// assert_eq!(receiver.recv().await, Ok(42));
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::SendersGone`] if the sender was dropped, or [`Error::Interrupt`].
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Result<T, Error>> {
        self.0.recv_from(Location::caller())
    }
}

/// Receives the value, like [`recv`](Receiver::recv).
impl<T> Future for Receiver<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_recv(cx)
    }
}
