//! A channel with many senders and one receiver. First in, first out.
//!
//! ```no_run
//! use traps::channel::mpsc;
//! use traps::{Error, spawn};
//!
//! # async fn example() -> Result<(), Error> {
//! let (jobs, mut receiver) = mpsc::channel(16);
//! spawn("producer", async move {
//!     for n in 0..100 {
//!         jobs.send(n).await?;
//!     }
//!     Ok::<(), Error>(())
//! })
//! .detached()
//! .await;
//! loop {
//!     match receiver.recv().await {
//!         Ok(n) => println!("{n}"),
//!         Err(Error::SendersGone) => return Ok(()),
//!         Err(error) => return Err(error),
//!     }
//! }
//! # }
//! ```

use std::borrow::Cow;
use std::panic::Location;

use super::queue::{Fifo, Stock};
use super::{End, Many, RECEIVES, SENDS, ends};
use crate::{Error, Rejected};

/// A handle that sends items into a channel. Clones send to the same receiver.
pub type Sender<T> = End<Stock<T, Fifo>, SENDS>;

/// The handle that receives the items of a channel. Dropping it drops the items that were not
/// received.
pub type Receiver<T> = End<Stock<T, Fifo>, RECEIVES>;

/// Makes a channel that holds at most `bound` items.
///
/// # Panics
///
/// Panics if `bound` is zero, because no item could ever be sent.
#[track_caller]
pub fn channel<T>(bound: usize) -> (Sender<T>, Receiver<T>) {
    named("", bound)
}

/// Makes a channel without a bound. A send never waits.
#[track_caller]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    named("", usize::MAX)
}

/// Makes a channel like [`channel`], with a name for the log. A bound above `u32::MAX` counts as
/// none.
///
/// # Panics
///
/// Panics if `bound` is zero.
#[track_caller]
pub fn named<T>(name: impl Into<Cow<'static, str>>, bound: usize) -> (Sender<T>, Receiver<T>) {
    let stock = Stock::new("mpsc", name.into(), bound);
    ends(stock.line.clone(), stock)
}

impl<T> Many<SENDS> for Stock<T, Fifo> {}

impl<T> Sender<T> {
    /// Sends an item. *Blocks* while there is no room. If this future is dropped, it has sent
    /// nothing, and the item is dropped with it.
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::ReceiversGone`] or [`Error::Interrupt`].
    #[track_caller]
    pub fn send(&self, item: T) -> impl Future<Output = Result<(), Rejected<T>>> {
        self.push_from(item, Location::caller())
    }

    /// Sends an item if there is free room. Room is not free if a task waits for it.
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::Full`] or [`Error::ReceiversGone`].
    pub fn try_send(&self, item: T) -> Result<(), Rejected<T>> {
        self.push(item, self.room().map(|_| Error::Full))
    }
}

impl<T> Receiver<T> {
    /// Closes the receiver: every send from now on fails, and every waiting send, too. Items that
    /// were sent before can still be received. After them, [`recv`](End::recv) returns
    /// [`Error::Closed`]. A task that polled the receiver before and still waits gets this error,
    /// too.
    pub fn close(&mut self) {
        self.shared.handles[RECEIVES].set(0);
        self.shared.line.wake(u64::MAX);
        self.shared.state.room.as_ref().inspect(|room| room.wake(u64::MAX));
    }
}
