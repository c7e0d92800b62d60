//! Signals of the process, as something to wait for.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::call::Call;
use crate::error::{Error, wrong_answer};
use crate::gate;
use crate::protocol::{Answer, Post, Request};

/// A signal that a task can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// `SIGHUP`
    Hangup,
    /// `SIGINT`, Ctrl-C.
    Interrupt,
    /// `SIGUSR1`
    User1,
    /// `SIGTERM`
    Terminate,
}

impl Signal {
    /// All of them, in the order of their numbers on Linux.
    pub const ALL: [Signal; 4] =
        [Signal::Hangup, Signal::Interrupt, Signal::User1, Signal::Terminate];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The name in the manual, `SIGINT`.
impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Signal::Hangup => "SIGHUP",
            Signal::Interrupt => "SIGINT",
            Signal::User1 => "SIGUSR1",
            Signal::Terminate => "SIGTERM",
        })
    }
}

/// Some of the signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SignalSet(u8);

impl SignalSet {
    /// Whether `signal` is in it.
    #[must_use]
    pub fn contains(self, signal: Signal) -> bool {
        self.0 & signal.bit() != 0
    }

    /// With `signal` added.
    #[must_use]
    pub fn with(self, signal: Signal) -> SignalSet {
        SignalSet(self.0 | signal.bit())
    }

    /// With `signal` taken out.
    #[must_use]
    pub fn without(self, signal: Signal) -> SignalSet {
        SignalSet(self.0 & !signal.bit())
    }

    /// Those in it, the lowest number first.
    pub fn iter(self) -> impl Iterator<Item = Signal> {
        Signal::ALL.into_iter().filter(move |signal| self.contains(*signal))
    }
}

impl FromIterator<Signal> for SignalSet {
    fn from_iter<I: IntoIterator<Item = Signal>>(signals: I) -> SignalSet {
        signals.into_iter().fold(SignalSet::default(), SignalSet::with)
    }
}

/// Waits until one of `signals` arrives. From the first wait on, a signal that was waited for does
/// not end the process any more; one that arrives between two waits is kept for the next.
///
/// # Errors
///
/// [`Error::Interrupt`] if the wait ended early, [`Error::Io`] if the system refused the handler.
#[track_caller]
pub fn wait_signal(signals: &[Signal]) -> WaitSignal {
    WaitSignal { set: signals.iter().copied().collect(), call: Call::here() }
}

/// The future of [`wait_signal`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct WaitSignal {
    set: SignalSet,
    call: Call,
}

impl Drop for WaitSignal {
    fn drop(&mut self) {
        let Some(ticket) = self.call.ticket() else { return };
        if let Some(Ok(Answer::Signal(signal))) = self.call.abandon() {
            gate::post(Post::Keep { signal, epoch: ticket.epoch });
        }
    }
}

impl Future for WaitSignal {
    type Output = Result<Signal, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let WaitSignal { set, call } = &mut *self;
        call.poll(cx, || Request::Signal(*set)).map(|result| match result {
            Ok(Answer::Signal(signal)) => Ok(signal),
            Ok(other) => wrong_answer(&other),
            Err(failure) => Err(failure.into()),
        })
    }
}
