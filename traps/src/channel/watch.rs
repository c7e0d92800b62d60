//! One value that changes, and receivers that wait for its changes. A receiver sees the newest
//! value; it may miss others in between.
//!
//! ```no_run
//! use traps::channel::watch;
//! use traps::spawn;
//!
//! # async fn example() -> Result<(), traps::Error> {
//! let (level, mut receiver) = watch::channel(0);
//! spawn("gauge", async move {
//!     while receiver.changed().await.is_ok() {
//!         println!("{}", *receiver.borrow());
//!     }
//! })
//! .await;
//! level.send(7)?;
//! level.send_modify(|level| *level += 1);
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};
use std::panic::Location;

use super::{End, Many, RECEIVES, SENDS, State, ends, line};
use crate::{Error, Rejected};

/// The handle that changes the value.
pub type Sender<T> = End<Value<T>, SENDS>;

/// A handle that waits for changes. A clone has seen what this one has seen. What it
/// *receives* is the news that there was a change.
pub type Receiver<T> = End<Value<T>, RECEIVES>;

/// The value of a channel.
pub struct Value<T> {
    value: RefCell<T>,
    /// How often it was changed.
    version: Cell<u64>,
}

/// A channel with a first value, which the first receiver has seen.
#[track_caller]
pub fn channel<T>(initial: T) -> (Sender<T>, Receiver<T>) {
    named("", initial)
}

/// [`channel`] with a name for the log.
#[track_caller]
pub fn named<T>(name: impl Into<Cow<'static, str>>, initial: T) -> (Sender<T>, Receiver<T>) {
    let value = Value { value: RefCell::new(initial), version: Cell::new(0) };
    ends(line("watch", name), value)
}

impl<T> State for Value<T> {
    type Item = ();
    fn attempt(&self, at: &mut u64) -> Result<(), Error> {
        let seen = std::mem::replace(at, self.version.get());
        if seen == *at { Err(Error::Empty) } else { Ok(()) }
    }
}

impl<T> Sender<T> {
    /// Sets the value. Never blocks.
    ///
    /// # Errors
    ///
    /// The new value, and [`Error::ReceiversGone`] if there is no receiver now.
    ///
    /// # Panics
    ///
    /// If the value is [borrowed](End::borrow).
    #[track_caller]
    pub fn send(&self, mut value: T) -> Result<(), Rejected<T>> {
        if self.is_closed() {
            return Err(Rejected { item: Some(value), why: Error::ReceiversGone });
        }
        self.send_modify(|old| std::mem::swap(old, &mut value));
        Ok(())
    }

    /// Changes the value in place, whether there is a receiver or not. Never blocks.
    ///
    /// # Panics
    ///
    /// If the value is [borrowed](End::borrow). `modify` may not use the channel.
    #[track_caller]
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        let Value { value, version } = &self.shared.state;
        modify(&mut value.borrow_mut());
        version.set(version.get() + 1);
        self.shared.line.wake(u64::MAX);
    }

    /// A new receiver, which has seen the value as it is now.
    pub fn subscribe(&self) -> Receiver<T> {
        End::of(&self.shared, self.shared.state.version.get())
    }
}

impl<T, const SIDE: usize> End<Value<T>, SIDE> {
    /// Looks at the value. Let go of it before the task waits: a send panics while it is borrowed.
    pub fn borrow(&self) -> Ref<'_, T> {
        self.shared.state.value.borrow()
    }
}

impl<T> Many<RECEIVES> for Value<T> {}

impl<T> Receiver<T> {
    /// Waits for a change that this receiver has not seen, and marks it as seen. *Blocks* unless
    /// there was one. Dropped, it has marked nothing.
    ///
    /// # Errors
    ///
    /// [`Error::SendersGone`] or [`Error::Interrupt`].
    #[track_caller]
    pub fn changed(&mut self) -> impl Future<Output = Result<(), Error>> {
        self.recv()
    }

    /// Waits until `is_it` holds for the value, marks that as seen and looks at it, as
    /// [`borrow`](End::borrow). *Blocks* unless it holds now.
    ///
    /// # Errors
    ///
    /// [`Error::SendersGone`] if it does not hold for the last value, or [`Error::Interrupt`].
    ///
    /// # Panics
    ///
    /// If `is_it` sends.
    #[track_caller]
    pub fn wait_for(
        &mut self,
        mut is_it: impl FnMut(&T) -> bool,
    ) -> impl Future<Output = Result<Ref<'_, T>, Error>> {
        let site = Location::caller();
        async move {
            while !is_it(&self.borrow()) {
                self.recv_from(site).await?;
            }
            self.at = self.shared.state.version.get();
            Ok(self.borrow())
        }
    }
}
