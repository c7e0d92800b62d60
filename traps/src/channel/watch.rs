//! A channel for one value that changes. Receivers wait for its changes. A receiver sees the newest
//! value, and can miss values in between.
//!
//! ```
//! use traps::channel::watch;
//! use traps::spawn;
//!
//! # testing::run(async {
//! let (level, mut receiver) = watch::channel(0);
//! let mut gauge = spawn("gauge", async move {
//!     let mut seen = Vec::new();
//!     while receiver.changed().await.is_ok() {
//!         seen.push(*receiver.borrow());
//!     }
//!     seen
//! })
//! .await;
//! level.send(7).unwrap();
//! level.send_modify(|level| *level += 1);
//! traps::yield_now().await.unwrap(); // the gauge runs, and misses the 7
//! level.send(9).unwrap();
//! drop(level);
//! assert_eq!(gauge.join().await.unwrap(), [8, 9]);
//! # });
//! ```

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};
use std::panic::Location;
use std::task::{Context, Poll};

use super::{Content, ReceiverOf, SenderOf, ends, queue_of};
use crate::sync::OnDrop;
use crate::{Error, Rejected};

/// Changes the value of a channel.
///
/// ```
/// use traps::channel::watch;
///
/// struct Thermostat {
///     degrees: watch::Sender<i32>,
/// }
///
/// let (degrees, receiver) = watch::channel(20);
/// let thermostat = Thermostat { degrees };
/// thermostat.degrees.send_modify(|degrees| *degrees += 1);
/// assert_eq!(*receiver.borrow(), 21);
/// ```
pub struct Sender<T>(SenderOf<Value<T>>);

/// Waits for changes of a channel's value. A clone counts the same changes as seen.
///
/// ```
/// use traps::channel::watch;
///
/// # testing::run(async {
/// let (sender, receiver) = watch::channel(0);
/// sender.send(7).unwrap();
/// let mut clone: watch::Receiver<u32> = receiver.clone();
/// drop(receiver);
/// clone.changed().await.unwrap(); // the clone has not seen the change either
/// # });
/// ```
pub struct Receiver<T>(ReceiverOf<Value<T>>);

/// The value of a channel, and its version.
struct Value<T> {
    value: RefCell<T>,
    /// The number of changes so far.
    version: Cell<u64>,
}

/// Makes a channel with a first value. The first receiver counts that value as seen.
///
/// ```
/// let (_sender, receiver) = traps::channel::watch::channel("off");
/// assert_eq!(*receiver.borrow(), "off");
/// ```
#[track_caller]
pub fn channel<T>(initial: T) -> (Sender<T>, Receiver<T>) {
    named("", initial)
}

/// Makes a channel like [`channel`], with a name for the log.
///
/// ```
/// use traps::channel::watch;
///
/// # let ran = testing::run(async {
/// let (level, mut receiver) = watch::named("level", 0);
/// let send = async { level.send(7) };
/// // The receiver waits first: the log has `watch level`.
/// let (changed, _) = traps::join(receiver.changed(), send).await;
/// assert!(changed.is_ok());
/// # });
/// # assert!(ran.trace.contains("watch level"), "{}", ran.trace);
/// ```
#[track_caller]
pub fn named<T>(name: impl Into<Cow<'static, str>>, initial: T) -> (Sender<T>, Receiver<T>) {
    let value = Value { value: RefCell::new(initial), version: Cell::new(0) };
    let (sender, receiver) = ends(queue_of("watch", name), value);
    (Sender(sender), Receiver(receiver))
}

handles!([], (), "watch::channel(0)");

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Receiver(self.0.clone())
    }
}

impl<T> Content for Value<T> {
    /// There was a change.
    type Item = ();

    fn receive(&self, at: &mut u64) -> Result<(), Error> {
        let seen = std::mem::replace(at, self.version.get());
        if seen == *at { Err(Error::Empty) } else { Ok(()) }
    }
}

impl<T> Sender<T> {
    /// Sets the value. Never blocks.
    ///
    /// ```
    /// let (sender, mut receiver) = traps::channel::watch::channel("off");
    /// sender.send("on").unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(())); // there was a change
    /// assert_eq!(*receiver.borrow(), "on");
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the new value with [`Error::ReceiversGone`] if there is no receiver now.
    ///
    /// # Panics
    ///
    /// Panics if the value is [borrowed](Receiver::borrow).
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
    /// ```
    /// let (sender, receiver) = traps::channel::watch::channel(vec![1]);
    /// sender.send_modify(|list| list.push(2));
    /// assert_eq!(*receiver.borrow(), [1, 2]);
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the value is [borrowed](Receiver::borrow).
    #[track_caller]
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        let Value { value, version } = &self.0.channel.content;
        let mut value = value.borrow_mut();
        let _however_it_ends = OnDrop(Some(|| {
            version.set(version.get() + 1);
            self.0.channel.queue.wake(u64::MAX);
        }));
        modify(&mut value);
    }

    /// Makes a new receiver, which counts the present value as seen.
    ///
    /// ```
    /// use traps::Error;
    ///
    /// let (sender, _first) = traps::channel::watch::channel(0);
    /// sender.send(7).unwrap();
    /// let mut late = sender.subscribe();
    /// assert_eq!(*late.borrow(), 7);
    /// assert_eq!(late.try_recv(), Err(Error::Empty));
    /// ```
    pub fn subscribe(&self) -> Receiver<T> {
        let version = self.0.channel.content.version.get();
        Receiver(ReceiverOf::new(&self.0.channel, version))
    }

    /// Borrows the value, like [`Receiver::borrow`].
    ///
    /// ```
    /// let (sender, _receiver) = traps::channel::watch::channel(7);
    /// assert_eq!(*sender.borrow(), 7);
    /// ```
    pub fn borrow(&self) -> Ref<'_, T> {
        self.0.channel.content.value.borrow()
    }
}

impl<T> Receiver<T> {
    /// Borrows the value. Drop the borrow before the task waits, because a send panics while the
    /// value is borrowed.
    ///
    /// ```
    /// let (_sender, receiver) = traps::channel::watch::channel(7);
    /// let level = *receiver.borrow(); // copied, so the borrow ends here
    /// assert_eq!(level, 7);
    /// ```
    pub fn borrow(&self) -> Ref<'_, T> {
        self.0.channel.content.value.borrow()
    }

    /// Waits for a change that this receiver has not seen, and marks it as seen. *Blocks*, unless
    /// there was one. If this future is dropped, it has marked nothing.
    ///
    /// ```
    /// use traps::channel::watch;
    ///
    /// # testing::run(async {
    /// let (sender, mut receiver) = watch::channel(0);
    /// sender.send(7).unwrap();
    /// receiver.changed().await.unwrap();
    /// assert_eq!(*receiver.borrow(), 7);
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::SendersGone`] or [`Error::Interrupt`].
    #[track_caller]
    pub fn changed(&mut self) -> impl Future<Output = Result<(), Error>> {
        self.0.recv_from(Location::caller())
    }

    /// Waits until `is_it` returns `true` for the value, marks that value as seen, and borrows it
    /// like [`borrow`](Receiver::borrow). *Blocks*, unless `is_it` returns `true` at once.
    ///
    /// ```
    /// use traps::channel::watch;
    /// use traps::spawn;
    ///
    /// # testing::run(async {
    /// let (sender, mut receiver) = watch::channel(0);
    /// spawn("sender", async move { (1..=7).try_for_each(|n| sender.send(n)) }).detached().await;
    /// assert_eq!(*receiver.wait_for(|n| *n > 5).await.unwrap(), 7);
    /// # });
    /// ```
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
                self.0.recv_from(site).await?;
            }
            let Value { value, version } = &self.0.channel.content;
            self.0.at = version.get();
            Ok(value.borrow())
        }
    }
}
