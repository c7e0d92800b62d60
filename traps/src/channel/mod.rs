//! Channels between the tasks of one kernel, and queues as in Curio. All of them are built from
//! [`WaitQueue`] alone.
//!
//! | module | senders | receivers | who gets an item |
//! |---|---|---|---|
//! | [`mpsc`] | many | one | the receiver |
//! | [`oneshot`] | one | one | the receiver; there is only one item |
//! | [`broadcast`] | many | many | each receiver that had subscribed before |
//! | [`watch`] | one | many | each receiver; only the newest value is kept |
//! | [`queue`] | any task | any task | the first task that takes it; there are no sides |
//!
//! All of them follow these rules:
//!
//! - An operation that need not wait makes no trap, so it cannot be interrupted.
//! - An interrupted or dropped operation has had no effect: it has received or sent nothing. The
//!   error of an interrupted send contains the item.
//! - Waiters are served in the order of arrival. No task overtakes another.
//! - A channel is closed once all handles of one side are gone. This wakes all waiters and is an
//!   error: a receiver gets [`Error::SendersGone`] once it has received all that was sent before,
//!   and a sender gets [`Error::ReceiversGone`].
//! - Each has a constructor `named`, which takes a name for the log and for the table of tasks.
//! - With the feature `stream`, a receiver is a stream from `futures_core`. The stream yields
//!   results, so that the task sees an interrupt. Ending the stream instead would hide the
//!   interrupt. Use `?` on each item, or the `try_` adapters: an adapter that drops errors swallows
//!   timeouts and cancellations.
//!
//! A handle belongs to its thread. Between threads, use [`universal`](crate::universal). The error
//! of the compiler says so, too:
//!
//! ```compile_fail,E0277
//! let (sender, _receiver) = traps::channel::mpsc::channel::<u32>(1);
//! std::thread::spawn(move || sender.try_send(1));
//! ```

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::core::table::Site;
use crate::{Error, Interrupt, WaitInQueue, WaitQueue};

pub mod broadcast;
pub mod mpsc;
pub mod oneshot;
pub mod queue;
pub mod watch;

/// The content of a channel.
pub trait State {
    /// The value that a receive returns.
    type Item;
    /// Returns the next item, or [`Error::Empty`]. `at` is the position of the receiver: the number
    /// of its next item, or of the version that it has seen.
    fn attempt(&self, at: &mut u64) -> Result<Self::Item, Error>;
    /// Handles the drop of the last receiver.
    fn abandon(&self) {}
}

/// A channel whose side `SIDE` can have several handles.
pub trait Many<const SIDE: usize>: State {}

/// The side of the senders.
const SENDS: usize = 0;
/// The side of the receivers.
const RECEIVES: usize = 1;
/// The side of a queue, which has no separate senders and receivers.
const BOTH: usize = 2;

/// A handle of a channel, which keeps its side of the channel open. Each type of sender, receiver
/// and queue is an `End`.
pub struct End<C: State, const SIDE: usize> {
    home: PhantomData<dyn UseTrapsUniversalQueueBetweenThreads>,
    shared: Handle<C>,
    /// The position of a receiver in the channel; see [`State::attempt`].
    at: u64,
    /// The wait of a receiver that is polled as a stream or a future.
    wait: Option<WaitInQueue>,
}

/// A name for the compiler's error if a handle is sent to another thread: use
/// [`UniversalQueue`](crate::universal::UniversalQueue) between threads.
trait UseTrapsUniversalQueueBetweenThreads: Unpin {}

/// The reference of a handle to its channel. It is a type of its own, because the compiler reports
/// an `Rc` that is a field of [`End`] before it reports `home`.
struct Handle<C>(Rc<Shared<C>>);

impl<C> Deref for Handle<C> {
    type Target = Rc<Shared<C>>;

    fn deref(&self) -> &Rc<Shared<C>> {
        &self.0
    }
}

struct Shared<C> {
    state: C,
    /// The queue of tasks that wait for a change of the state.
    line: WaitQueue,
    /// The number of handles of each side.
    handles: [Cell<usize>; 3],
    /// The call site that made the channel.
    site: Site,
}

/// The result of a receive.
type Received<C> = Result<<C as State>::Item, Error>;

fn line(kind: &'static str, name: impl Into<Cow<'static, str>>) -> WaitQueue {
    WaitQueue::new().described(kind, name)
}

#[track_caller]
fn shared<C>(line: WaitQueue, state: C) -> Rc<Shared<C>> {
    Rc::new(Shared { state, line, handles: Default::default(), site: Location::caller() })
}

/// Makes the first sender and the first receiver of a new channel.
#[track_caller]
fn ends<C: State>(line: WaitQueue, state: C) -> (End<C, SENDS>, End<C, RECEIVES>) {
    let shared = shared(line, state);
    (End::of(&shared, 0), End::of(&shared, 0))
}

/// Waits in `line` until `is_so` returns `true`.
async fn until(line: &WaitQueue, site: Site, is_so: impl Fn() -> bool) -> Result<(), Interrupt> {
    while !is_so() {
        line.wait_from(site).await?;
    }
    Ok(())
}

impl<C: State, const SIDE: usize> End<C, SIDE> {
    /// Makes one more handle of a channel, with the position `at`.
    fn of(shared: &Rc<Shared<C>>, at: u64) -> Self {
        shared.handles[SIDE].update(|handles| handles + 1);
        End { home: PhantomData, shared: Handle(shared.clone()), at, wait: None }
    }

    /// Returns whether the channel is closed: one side is gone, or its only receiver was closed.
    pub fn is_closed(&self) -> bool {
        SIDE != BOTH && self.shared.handles[..BOTH].iter().any(|handles| handles.get() == 0)
    }
}

impl<C: Many<SIDE>, const SIDE: usize> Clone for End<C, SIDE> {
    fn clone(&self) -> Self {
        End::of(&self.shared, self.at)
    }
}

impl<C: State, const SIDE: usize> Drop for End<C, SIDE> {
    fn drop(&mut self) {
        let Shared { state, line, handles, .. } = &**self.shared;
        // A closed receiver no longer counts, so the count can be zero here.
        handles[SIDE].update(|handles| handles.saturating_sub(1));
        if handles[SIDE].get() == 0 {
            line.wake(u64::MAX);
            if SIDE == RECEIVES {
                state.abandon();
            }
        }
    }
}

impl<C: State, const SIDE: usize> fmt::Debug for End<C, SIDE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(["Sender", "Receiver", "Queue"][SIDE])
    }
}

impl<C: State> End<C, RECEIVES> {
    /// Receives the next item. *Blocks* while there is none. If this future is dropped, it has
    /// received nothing.
    ///
    /// # Errors
    ///
    /// Returns [`Error::SendersGone`], [`Error::Closed`] if the receiver was closed,
    /// [`Error::Lagged`] from a [broadcast] channel, or [`Error::Interrupt`].
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Received<C>> {
        self.recv_from(Location::caller())
    }

    async fn recv_from(&mut self, site: Site) -> Received<C> {
        // Drop an older wait of this receiver. It is in front in the queue and would take the
        // wake-up.
        self.wait = None;
        loop {
            match self.try_recv() {
                Err(Error::Empty) => self.shared.line.wait_from(site).await?,
                received => return received,
            }
        }
    }

    /// Polls for the next item, like [`recv`](End::recv), for a hand-written future. While this is
    /// pending, the receiver itself waits in the queue, until there is an item or `recv` is called.
    /// The log shows the call site that made the channel.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Received<C>> {
        loop {
            if let Some(wait) = &mut self.wait {
                let ended = Pin::new(wait).poll(cx);
                // If the channel was closed in the meantime, there is nothing to wait for.
                if ended.is_pending() && !self.is_closed() {
                    return Poll::Pending;
                }
                self.wait = None;
                if let Poll::Ready(ended) = ended {
                    ended?;
                }
            }
            match self.try_recv() {
                Err(Error::Empty) => self.wait = Some(self.shared.line.wait_from(self.shared.site)),
                received => return Poll::Ready(received),
            }
        }
    }

    /// Receives the next item, if there is one.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`recv`](End::recv), but [`Error::Empty`] instead of an interrupt.
    pub fn try_recv(&mut self) -> Received<C> {
        self.shared.state.attempt(&mut self.at).map_err(|why| match why {
            Error::Empty if self.shared.handles[SENDS].get() == 0 => Error::SendersGone,
            Error::Empty if self.is_closed() => Error::Closed,
            why => why,
        })
    }
}

/// Yields the results of [`recv`](End::recv) until the channel is closed. The stream continues
/// after an interrupt and after [`Error::Lagged`].
#[cfg(feature = "stream")]
impl<C: State> futures_core::Stream for End<C, RECEIVES> {
    type Item = Received<C>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_recv(cx).map(|received| match received {
            Err(Error::SendersGone | Error::Closed) => None,
            received => Some(received),
        })
    }
}
