//! Many senders, one receiver, first in, first out.
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

/// A handle that sends. Clones send to the same receiver.
pub type Sender<T> = End<Stock<T, Fifo>, SENDS>;

/// The handle that receives. When it is dropped, so are the items that were not received.
pub type Receiver<T> = End<Stock<T, Fifo>, RECEIVES>;

/// A channel that holds `bound` items at most.
///
/// # Panics
///
/// If `bound` is zero: nothing could ever be sent.
#[track_caller]
pub fn channel<T>(bound: usize) -> (Sender<T>, Receiver<T>) {
    named("", bound)
}

/// A channel without a bound: a send never waits.
#[track_caller]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    named("", usize::MAX)
}

/// [`channel`] with a name for the log. A bound of more than `u32::MAX` is none.
///
/// # Panics
///
/// As [`channel`].
#[track_caller]
pub fn named<T>(name: impl Into<Cow<'static, str>>, bound: usize) -> (Sender<T>, Receiver<T>) {
    let stock = Stock::new("mpsc", name.into(), bound);
    ends(stock.line.clone(), stock)
}

impl<T> Many<SENDS> for Stock<T, Fifo> {}

impl<T> Sender<T> {
    /// Sends an item. *Blocks* while there is no room. Dropped, it has not sent, and the item is
    /// dropped with it.
    ///
    /// # Errors
    ///
    /// The item, and [`Error::ReceiversGone`] or [`Error::Interrupt`].
    #[track_caller]
    pub fn send(&self, item: T) -> impl Future<Output = Result<(), Rejected<T>>> {
        self.push_from(item, Location::caller())
    }

    /// Sends an item if there is room that nobody waits for.
    ///
    /// # Errors
    ///
    /// The item, and [`Error::Full`] or [`Error::ReceiversGone`].
    pub fn try_send(&self, item: T) -> Result<(), Rejected<T>> {
        self.push(item, self.room().map(|_| Error::Full))
    }
}

impl<T> Receiver<T> {
    /// Refuses what is sent from now on, also by those who wait. What was sent can be received;
    /// then [`recv`](End::recv) gives [`Error::Closed`].
    pub fn close(&mut self) {
        self.shared.handles[RECEIVES].set(0);
        self.shared.state.room.as_ref().inspect(|room| room.wake(u64::MAX));
    }
}
