//! Signals of the process: one to wait for, and a stream of which everyone who asks sees each.
//!
//! A signal sets a bit in the lines that want it and wakes those who wait in their queues. Whoever
//! is woken looks for its bit, so a wait that is dropped unread takes no signal with it.

use std::future::poll_fn;
use std::panic::Location;
use std::rc::Rc;

use crate::core::gate;
use crate::core::names::Site;
use crate::core::posting;
use crate::core::protocol::{Post, ServicePost};
use crate::core::signals::SignalLine;
use crate::error::Error;
use crate::sync::Wait;

pub use crate::core::signals::{Signal, SignalSet};

/// Waits until one of `signals` arrives. *Blocks.* From the first wait on, a signal that was waited
/// for no longer ends the process; one that arrives between two waits is kept for the next.
///
/// # Errors
///
/// [`Error::Interrupt`] if the wait ended early, [`Error::Io`] if the system refused the handler.
#[track_caller]
pub fn wait_signal(signals: &[Signal]) -> impl Future<Output = Result<Signal, Error>> + use<> {
    let (wanted, site): (SignalSet, _) = (signals.iter().copied().collect(), Location::caller());
    let begin = move || {
        let Some(kernel) = gate::shared() else { gate::refuse_outside_a_task(site) };
        let line = kernel.signals.clone();
        line.wanted.set(wanted.iter().fold(line.wanted.get(), SignalSet::with));
        Box::pin(async move { next(&line, wanted, false, site).await })
    };
    let mut wait = None;
    poll_fn(move |cx| {
        // In another kernel it waits in the line of that.
        wait.take_if(|(epoch, _)| *epoch != gate::epoch());
        let (_, wait) = wait.get_or_insert_with(|| (gate::epoch(), begin()));
        wait.as_mut().poll(cx)
    })
}

/// Waits in a line until a signal is there.
async fn next(
    line: &Rc<SignalLine>,
    wanted: SignalSet,
    is_stream: bool,
    site: Site,
) -> Result<Signal, Error> {
    // The kernel may have been told before, but by a task of another one.
    posting::post(Post::Service(ServicePost::Watch(line.clone(), is_stream)));
    loop {
        if let Some(refused) = line.take_refusal(wanted) {
            return Err(Error::Io(refused));
        }
        if let Some(signal) = line.take(wanted) {
            return Ok(signal);
        }
        Wait::new(line.queue.clone(), false, site).await?;
    }
}

/// A stream of `signals`, for [`Signals::next`].
///
/// Every stream sees every signal that it asked for, also if others wait for the same one. From
/// the first poll of the first `next` on, these signals no longer end the process, and those that
/// arrive between two `next`s are kept: of each signal at most one, as the system does it.
///
/// ```no_run
/// # fn reload() {}
/// # async fn example() -> Result<(), traps::Error> {
/// use traps::{Signal, signals};
///
/// let mut hangups = signals(&[Signal::Hangup]);
/// loop {
///     hangups.next().await?;
///     reload();
/// }
/// # }
/// ```
#[must_use]
pub fn signals(signals: &[Signal]) -> Signals {
    Signals { line: Rc::new(SignalLine::new(signals.iter().copied().collect())) }
}

/// A stream of signals, made by [`signals`]. Belongs to its thread.
#[derive(Debug)]
pub struct Signals {
    line: Rc<SignalLine>,
}

impl Signals {
    /// The next of its signals; of several that wait, the one with the lowest number. *Blocks*
    /// unless one is kept. A wait that is interrupted or dropped takes no signal.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupt`] if the wait ended early, [`Error::Io`] if the system refused a handler.
    #[track_caller]
    #[expect(clippy::should_implement_trait, reason = "a stream is no iterator: it waits")]
    pub fn next(&mut self) -> impl Future<Output = Result<Signal, Error>> {
        let site = Location::caller();
        async move { next(&self.line, self.line.wanted.get(), true, site).await }
    }
}
