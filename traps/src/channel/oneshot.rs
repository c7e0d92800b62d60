//! A channel for one value, from one sender to one receiver.
//!
//! ```no_run
//! use traps::channel::oneshot;
//! use traps::spawn;
//!
//! # async fn example() -> Result<(), traps::Error> {
//! let (sender, receiver) = oneshot::channel();
//! spawn("answerer", async move { sender.send(42) }).detached().await;
//! assert_eq!(receiver.await?, 42);
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{End, RECEIVES, SENDS, State, ends, line, until};
use crate::{Error, Interrupt};

/// The handle that sends the value of a channel.
pub type Sender<T> = End<Cell<Option<T>>, SENDS>;

/// The handle that receives the value of a channel. It is also a future; then the log shows the
/// call site that made the channel. After it has returned the value, it returns only
/// [`Error::SendersGone`].
pub type Receiver<T> = End<Cell<Option<T>>, RECEIVES>;

/// Makes a channel for one value.
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    named("")
}

/// Makes a channel like [`channel`], with a name for the log.
#[track_caller]
pub fn named<T>(name: impl Into<Cow<'static, str>>) -> (Sender<T>, Receiver<T>) {
    ends(line("oneshot", name), Cell::new(None))
}

impl<T> State for Cell<Option<T>> {
    type Item = T;
    fn attempt(&self, _: &mut u64) -> Result<T, Error> {
        self.take().ok_or(Error::Empty)
    }
}

impl<T> Sender<T> {
    /// Sends the value. Never blocks.
    ///
    /// # Errors
    ///
    /// Returns the value if the receiver is gone.
    pub fn send(self, value: T) -> Result<(), T> {
        if self.is_closed() {
            return Err(value);
        }
        self.shared.state.set(Some(value));
        // The drop of this end wakes the receiver.
        Ok(())
    }

    /// Waits until the receiver is gone. *Blocks*, unless it is gone already.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait.
    #[track_caller]
    pub fn closed(&self) -> impl Future<Output = Result<(), Interrupt>> {
        until(&self.shared.line, Location::caller(), || self.is_closed())
    }
}

/// Receives the value, like [`recv`](End::recv).
impl<T> Future for Receiver<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_recv(cx)
    }
}
