//! A channel for one value that changes. Receivers wait for its changes. A receiver sees the newest
//! value, and can miss values in between.
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
use crate::sync::OnDrop;
use crate::{Error, Rejected};

/// The handle that changes the value of a channel.
pub type Sender<T> = End<Value<T>, SENDS>;

/// A handle that waits for changes of a channel's value. A clone counts the same changes as seen. A
/// receive returns `()`, which means that there was a change.
pub type Receiver<T> = End<Value<T>, RECEIVES>;

/// The value of a channel, and its version.
#[derive(Debug)]
pub struct Value<T> {
    value: RefCell<T>,
    /// The number of changes so far.
    version: Cell<u64>,
}

/// Makes a channel with a first value. The first receiver counts that value as seen.
#[track_caller]
pub fn channel<T>(initial: T) -> (Sender<T>, Receiver<T>) {
    named("", initial)
}

/// Makes a channel like [`channel`], with a name for the log.
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
    /// Returns the new value with [`Error::ReceiversGone`] if there is no receiver now.
    ///
    /// # Panics
    ///
    /// Panics if the value is [borrowed](End::borrow).
    #[track_caller]
    pub fn send(&self, mut value: T) -> Result<(), Rejected<T>> {
        if self.is_closed() {
            return Err(Rejected { item: Some(value), why: Error::ReceiversGone });
        }
        self.send_modify(|old| std::mem::swap(old, &mut value));
        Ok(())
    }

    /// Changes the value in place, even if there is no receiver. Never blocks. If `modify` panics,
    /// that counts as a change. `modify` must not use the channel.
    ///
    /// # Panics
    ///
    /// Panics if the value is [borrowed](End::borrow).
    #[track_caller]
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        let Value { value, version } = &self.shared.state;
        let mut value = value.borrow_mut();
        let _however_it_ends = OnDrop(Some(|| {
            version.set(version.get() + 1);
            self.shared.line.wake(u64::MAX);
        }));
        modify(&mut value);
    }

    /// Makes a new receiver, which counts the present value as seen.
    pub fn subscribe(&self) -> Receiver<T> {
        End::of(&self.shared, self.shared.state.version.get())
    }
}

impl<T, const SIDE: usize> End<Value<T>, SIDE> {
    /// Borrows the value. Drop the borrow before the task waits, because a send panics while the
    /// value is borrowed.
    pub fn borrow(&self) -> Ref<'_, T> {
        self.shared.state.value.borrow()
    }
}

impl<T> Many<RECEIVES> for Value<T> {}

impl<T> Receiver<T> {
    /// Waits for a change that this receiver has not seen, and marks it as seen. *Blocks*, unless
    /// there was one. If this future is dropped, it has marked nothing.
    ///
    /// # Errors
    ///
    /// Returns [`Error::SendersGone`] or [`Error::Interrupt`].
    #[track_caller]
    pub fn changed(&mut self) -> impl Future<Output = Result<(), Error>> {
        self.recv()
    }

    /// Waits until `is_it` returns `true` for the value, marks that value as seen, and borrows it
    /// like [`borrow`](End::borrow). *Blocks*, unless `is_it` returns `true` at once.
    ///
    /// # Errors
    ///
    /// Returns [`Error::SendersGone`] if `is_it` returns `false` for the last value, or returns
    /// [`Error::Interrupt`].
    ///
    /// # Panics
    ///
    /// Panics if `is_it` sends.
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
