//! A channel with many senders and many receivers. Each receiver gets each item that is sent after
//! it subscribed.
//!
//! A send never waits. The channel keeps only the newest items, so a slow receiver misses the
//! oldest ones. It then gets [`Error::Lagged`] with the number of missed items, and continues with
//! the oldest item that is kept.
//!
//! ```no_run
//! use traps::channel::broadcast;
//! use traps::{Error, spawn};
//!
//! # async fn example() -> Result<(), Error> {
//! let (news, mut receiver) = broadcast::channel(16);
//! spawn("reader", async move {
//!     loop {
//!         match receiver.recv().await {
//!             Ok(text) => println!("{text}"),
//!             Err(Error::Lagged(missed)) => println!("{missed} items were missed"),
//!             Err(error) => return error,
//!         }
//!     }
//! })
//! .detached()
//! .await;
//! news.send("hello")?;
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::{End, Many, RECEIVES, SENDS, State, ends, line};
use crate::{Error, Rejected};

/// A handle that sends items to all receivers of a channel. Clones send to the same receivers.
pub type Sender<T> = End<RefCell<Kept<T>>, SENDS>;

/// A handle that receives the items of a channel. [`subscribe`](End::subscribe) makes more of them.
pub type Receiver<T> = End<RefCell<Kept<T>>, RECEIVES>;

/// The content of a channel: its newest items.
#[derive(Debug)]
pub struct Kept<T> {
    /// The items, each in an `Rc`, so that an item is cloned for its receiver while nothing is
    /// borrowed.
    items: VecDeque<Rc<T>>,
    /// The number of the oldest item in `items`.
    first: u64,
    capacity: usize,
}

/// Makes a channel that keeps the newest `n` items, and its first receiver.
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
/// # Panics
///
/// Panics if `n` is zero.
#[track_caller]
pub fn named<T: Clone>(name: impl Into<Cow<'static, str>>, n: usize) -> (Sender<T>, Receiver<T>) {
    assert!(n > 0, "rule: a broadcast channel keeps one item at least");
    let kept = Kept { items: VecDeque::new(), first: 0, capacity: n };
    ends(line("broadcast", name), RefCell::new(kept))
}

impl<T: Clone> State for RefCell<Kept<T>> {
    type Item = T;
    fn attempt(&self, at: &mut u64) -> Result<T, Error> {
        let kept = self.borrow();
        if let Some(missed @ 1..) = kept.first.checked_sub(*at) {
            *at = kept.first;
            return Err(Error::Lagged(missed));
        }
        let place = usize::try_from(*at - kept.first).unwrap_or(usize::MAX);
        let item = kept.items.get(place).cloned().ok_or(Error::Empty)?;
        drop(kept);
        *at += 1;
        Ok(Rc::unwrap_or_clone(item))
    }
}

impl<T: Clone> Many<SENDS> for RefCell<Kept<T>> {}

impl<T: Clone> Sender<T> {
    /// Sends an item to all receivers. Never blocks. The channel keeps the item until newer ones
    /// replace it.
    ///
    /// # Errors
    ///
    /// Returns the item with [`Error::ReceiversGone`] if there is no receiver now.
    pub fn send(&self, item: T) -> Result<(), Rejected<T>> {
        if self.is_closed() {
            return Err(Rejected { item: Some(item), why: Error::ReceiversGone });
        }
        let mut kept = self.shared.state.borrow_mut();
        kept.items.push_back(Rc::new(item));
        let is_over = kept.items.len() > kept.capacity;
        kept.first += u64::from(is_over);
        let oldest = if is_over { kept.items.pop_front() } else { None };
        drop(kept);
        // Wake before the drop of the oldest item runs user code, which can panic.
        self.shared.line.wake(u64::MAX);
        drop(oldest);
        Ok(())
    }

    /// Makes a new receiver for the items that are sent from now on.
    pub fn subscribe(&self) -> Receiver<T> {
        let kept = self.shared.state.borrow();
        End::of(&self.shared, kept.first + kept.items.len() as u64)
    }
}
