//! Signals of the process: wait for one, or take them from a stream.
//!
//! Every stream sees every signal that it asked for. All waits that are not on a stream share one
//! record of kept signals in their kernel, so each signal goes to one of them.
//!
//! A signal sets a bit in each [`SignalInbox`] that wants it, and wakes the waits in its queue. A
//! woken wait then takes its bit. So a wait that is dropped before it reads the result loses no
//! signal.

use std::io;
use std::panic::Location;
use std::rc::Rc;

use crate::core::gate;
use crate::core::protocol::{Post, ServicePost};
use crate::core::table::Site;
use crate::error::Error;
use crate::parts::signals::{Refusal, SignalInbox};
use crate::sync::WaitInQueue;

pub use crate::parts::signals::{Signal, SignalSet};

/// Waits until one of `signals` arrives. *Blocks.* From the first wait for a signal on, that signal
/// no longer ends the process. If it arrives between two waits, it is kept for the next wait.
///
/// # Errors
///
/// Returns [`Error::Interrupt`] if the wait ended early, and [`Error::Io`] if the system refused
/// the handler.
///
/// ```
/// # use std::time::Duration;
/// use kernel::Sim;
/// use traps::{Signal, Time, wait_signal};
///
/// let at = Time::ZERO + Duration::from_secs(5);
/// let sim = Sim::new().signal_at(at, Signal::Terminate);
/// testing::Setup::new().sim(sim).run(async {
///     let signal = wait_signal(&[Signal::Interrupt, Signal::Terminate]).await;
///     assert_eq!(signal, Ok(Signal::Terminate));
/// });
/// ```
#[track_caller]
pub fn wait_signal(signals: &[Signal]) -> impl Future<Output = Result<Signal, Error>> + use<> {
    let (wanted, site): (SignalSet, _) = (signals.iter().copied().collect(), Location::caller());
    async move {
        let Some(kernel) = gate::shared() else { gate::refuse_outside_a_task(site) };
        let inbox = kernel.signals.clone();
        next(&inbox, wanted, false, site).await
    }
}

/// Lets children of the process keep their exit statuses until they are waited for. With an ignored
/// `SIGCHLD`, which a program can inherit, the system throws them away, and uses their numbers
/// again. Does nothing outside a kernel.
///
/// # Errors
///
/// Returns the system's error; no case is known.
pub fn keep_statuses() -> io::Result<()> {
    gate::with_shared(|kernel| (kernel.keep_statuses)()).unwrap_or(Ok(()))
}

/// Waits in `inbox` until the inbox has a signal of `wanted`, and takes the signal.
async fn next(
    inbox: &Rc<SignalInbox>,
    wanted: SignalSet,
    is_stream: bool,
    site: Site,
) -> Result<Signal, Error> {
    // Post this for every wait, not only for the first: a stream can be older than the kernel.
    let refusal = Refusal::default();
    let watch =
        ServicePost::Watch { inbox: inbox.clone(), wanted, is_stream, refusal: refusal.clone() };
    gate::post(Post::Service(watch));
    loop {
        if let Some(error) = refusal.take() {
            return Err(Error::Io(error));
        }
        if let Some(signal) = inbox.take(wanted) {
            return Ok(signal);
        }
        WaitInQueue::new(inbox.queue.clone(), false, site).await?;
    }
}

/// Makes a stream of `signals`, for [`SignalStream::next`].
///
/// Every stream sees every signal that it asked for, even if others wait for the same signal. From
/// the first poll of the first `next` on, these signals no longer end the process. Signals that
/// arrive between two calls of `next` are kept. Like the system, the stream keeps at most one of
/// each signal.
///
/// ```
/// # use std::time::Duration;
/// # use kernel::Sim;
/// use traps::{Signal, Time, ignore_after, signals};
///
/// let second = Duration::from_secs(1);
/// let at = |seconds| Time::ZERO + seconds * second;
/// let sim = Sim::new().signal_at(at(1), Signal::Hangup).signal_at(at(3), Signal::Hangup);
/// # testing::Setup::new().sim(sim).run(async {
/// let mut hangups = signals(&[Signal::Hangup]);
/// let mut reloads = 0;
/// while ignore_after(9 * second, hangups.next()).await?.is_some() {
///     reloads += 1; // reload the configuration
/// }
/// assert_eq!(reloads, 2);
/// # Ok::<(), traps::Error>(())
/// # }).output.unwrap();
/// ```
#[must_use]
pub fn signals(signals: &[Signal]) -> SignalStream {
    SignalStream { inbox: Rc::new(SignalInbox::new(signals.iter().copied().collect())) }
}

/// A stream of signals, made by [`signals`]. Belongs to its thread. It is not a
/// `futures_core::Stream`, because a wait can end with an error and continue.
#[derive(Debug)]
pub struct SignalStream {
    inbox: Rc<SignalInbox>,
}

impl SignalStream {
    /// Returns the next signal of the stream. If several are kept, returns the one with the lowest
    /// number. *Blocks* unless one is kept. An interrupted or dropped wait takes no signal.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Interrupt`] if the wait ended early, and [`Error::Io`] if the system
    /// refused a handler.
    #[track_caller]
    #[expect(clippy::should_implement_trait, reason = "a stream is no iterator: it waits")]
    pub fn next(&mut self) -> impl Future<Output = Result<Signal, Error>> {
        let site = Location::caller();
        async move { next(&self.inbox, self.inbox.wanted.get(), true, site).await }
    }
}
