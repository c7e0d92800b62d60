//! Channels between the tasks of one kernel, and Curio's queues. All of them are built from the
//! scheduling queue ([`WaitQueue`]) alone.
//!
//! | module | senders | receivers | who gets an item |
//! |---|---|---|---|
//! | [`mpsc`] | many | one | the receiver |
//! | [`oneshot`] | one | one | the receiver; there is one item |
//! | [`broadcast`] | many | many | each receiver that had subscribed before |
//! | [`watch`] | one | many | each receiver; only the newest value is kept |
//! | [`queue`] | any task | any task | whoever takes it first; there are no ends |
//!
//! What they have in common:
//!
//! - An operation that need not wait makes no trap. So it is no place to be interrupted.
//! - An operation that was interrupted or dropped did nothing: nothing was received, and what was
//!   to be sent was not. An interrupted send has its item in the error.
//! - Who waits is served in the order of coming. Nobody overtakes.
//! - A channel is closed when all holders of one end are gone. This wakes all who wait, and is an
//!   error: a receiver gets [`Error::SendersGone`] once it has received what was sent before, and a
//!   sender gets [`Error::ReceiversGone`].
//! - Each has a constructor `named`, which takes a name for the log and for the table of tasks.
//! - With the feature `stream`, a receiver is a stream from `futures_core`. Its items are
//!   results, because an interrupt has to reach the task: to end the stream instead would hide it.
//!
//! A handle belongs to its thread. Between threads, use [`universal`](crate::universal).

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use crate::core::names::Site;
use crate::{Error, Interrupt, Wait, WaitQueue};

pub mod broadcast;
pub mod mpsc;
pub mod oneshot;
pub mod queue;
pub mod watch;

/// What a channel holds.
pub trait State {
    /// What a receiver gets.
    type Item;
    /// Gives the next item, or [`Error::Empty`]. `at` is the place of the receiver: the number of
    /// its next item, or of the version that it has seen.
    fn attempt(&self, at: &mut u64) -> Result<Self::Item, Error>;
    /// The last receiver is gone.
    fn abandon(&self) {}
}

/// A channel that may have several handles of that side.
pub trait Many<const SIDE: usize>: State {}

/// The side of the senders.
const SENDS: usize = 0;
/// The side of the receivers.
const RECEIVES: usize = 1;
/// No side: a queue.
const BOTH: usize = 2;

/// A handle of a channel. It holds the channel open on its side. Each type of sender, of receiver
/// and of queue is one.
pub struct End<C: State, const SIDE: usize> {
    shared: Rc<Shared<C>>,
    /// The place of a receiver.
    at: u64,
    /// The wait of a receiver that is polled as a stream or a future.
    wait: Option<Wait>,
}

struct Shared<C> {
    state: C,
    /// Where tasks wait for a change of the state.
    line: WaitQueue,
    /// How many handles there are of each side.
    handles: [Cell<usize>; 3],
    /// Where the channel was made.
    site: Site,
}

/// What a receive comes to.
type Received<C> = Result<<C as State>::Item, Error>;

fn line(kind: &'static str, name: impl Into<Cow<'static, str>>) -> WaitQueue {
    WaitQueue::new().described(kind, name)
}

#[track_caller]
fn shared<C>(line: WaitQueue, state: C) -> Rc<Shared<C>> {
    Rc::new(Shared { state, line, handles: Default::default(), site: Location::caller() })
}

/// The first sender and the first receiver of a new channel.
#[track_caller]
fn ends<C: State>(line: WaitQueue, state: C) -> (End<C, SENDS>, End<C, RECEIVES>) {
    let shared = shared(line, state);
    (End::of(&shared, 0), End::of(&shared, 0))
}

/// Waits in `line` until something is so.
async fn until(line: &WaitQueue, site: Site, is_so: impl Fn() -> bool) -> Result<(), Interrupt> {
    while !is_so() {
        line.wait_from(site).await?;
    }
    Ok(())
}

impl<C: State, const SIDE: usize> End<C, SIDE> {
    /// One more handle.
    fn of(shared: &Rc<Shared<C>>, at: u64) -> Self {
        shared.handles[SIDE].update(|handles| handles + 1);
        End { shared: shared.clone(), at, wait: None }
    }

    /// Whether one side is gone: the other one, or a receiver that was closed.
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
        let Shared { state, line, handles, .. } = &*self.shared;
        // A receiver that was closed does not count any more.
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
    /// Receives what is next. *Blocks* while there is nothing. Dropped, it has received nothing.
    ///
    /// # Errors
    ///
    /// [`Error::SendersGone`], [`Error::Closed`] if the receiver was closed, [`Error::Lagged`]
    /// from a [broadcast] channel, or [`Error::Interrupt`].
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Received<C>> {
        self.recv_from(Location::caller())
    }

    async fn recv_from(&mut self, site: Site) -> Received<C> {
        // An older wait stands before this one in the line and would take its wake.
        self.wait = None;
        loop {
            match self.try_recv() {
                Err(Error::Empty) => self.shared.line.wait_from(site).await?,
                received => return received,
            }
        }
    }

    /// [`recv`](End::recv), for a future that is written by hand. The receiver itself then stands
    /// in line until there is something, or until a `recv`. The log shows where the channel was
    /// made.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Received<C>> {
        loop {
            if let Some(wait) = &mut self.wait {
                let ended = ready!(Pin::new(wait).poll(cx));
                self.wait = None;
                ended?;
            }
            match self.try_recv() {
                Err(Error::Empty) => self.wait = Some(self.shared.line.wait_from(self.shared.site)),
                received => return Poll::Ready(received),
            }
        }
    }

    /// Receives what is next, if there is something.
    ///
    /// # Errors
    ///
    /// As of [`recv`](End::recv), but [`Error::Empty`] instead of an interrupt.
    pub fn try_recv(&mut self) -> Received<C> {
        self.shared.state.attempt(&mut self.at).map_err(|why| match why {
            Error::Empty if self.shared.handles[SENDS].get() == 0 => Error::SendersGone,
            Error::Empty if self.is_closed() => Error::Closed,
            why => why,
        })
    }
}

/// What [`recv`](End::recv) gives, until the channel is closed. After an interrupt, and after
/// [`Error::Lagged`], the stream goes on.
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
