//! Signals of the process: one to wait for, and a stream of which everyone who asks sees each.

use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::call::Call;
use crate::error::Error;
use crate::gate;
use crate::protocol::{Answer, Owned, Post, Request};

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

/// Waits until one of `signals` arrives. *Blocks.* From the first wait on, a signal that was waited
/// for no longer ends the process; one that arrives between two waits is kept for the next.
///
/// # Errors
///
/// [`Error::Interrupt`] if the wait ended early, [`Error::Io`] if the system refused the handler.
#[track_caller]
pub fn wait_signal(signals: &[Signal]) -> impl Future<Output = Result<Signal, Error>> + use<> {
    NextSignal { line: Line::Any(signals.iter().copied().collect()), call: Call::here() }
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
    let set = signals.iter().copied().collect();
    Signals { line: Rc::new(SignalLine { set, kept: Cell::default() }) }
}

/// A stream of signals, made by [`signals`]. Belongs to its thread.
#[derive(Debug)]
pub struct Signals {
    line: Rc<SignalLine>,
}

impl Signals {
    /// The next of its signals; of several that wait, the one with the lowest number. *Blocks*;
    /// *answers* if one is kept. A signal that was handed to a future which is then dropped is
    /// kept.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupt`] if the wait ended early, [`Error::Io`] if the system refused a handler.
    #[track_caller]
    #[expect(clippy::should_implement_trait, reason = "a stream is no iterator: it waits")]
    pub fn next(&mut self) -> impl Future<Output = Result<Signal, Error>> {
        NextSignal { line: Line::Stream(self.line.clone()), call: Call::from(Location::caller()) }
    }
}

/// What a kernel and a stream of signals share.
#[derive(Debug)]
pub struct SignalLine {
    set: SignalSet,
    /// Arrived, and not taken yet.
    kept: Cell<SignalSet>,
}

impl SignalLine {
    /// Which it is for.
    #[must_use]
    pub fn set(&self) -> SignalSet {
        self.set
    }

    /// Keeps one that arrived, unless there is one already.
    pub fn keep(&self, signal: Signal) {
        self.kept.set(self.kept.get().with(signal));
    }

    /// Takes the lowest number that is kept.
    #[must_use]
    pub fn take(&self) -> Option<Signal> {
        let kept = self.kept.get();
        let found = kept.iter().next()?;
        self.kept.set(kept.without(found));
        Some(found)
    }
}

/// Where a wait stands.
#[derive(Debug)]
enum Line {
    /// With others, for the first of these signals.
    Any(SignalSet),
    /// At its stream.
    Stream(Rc<SignalLine>),
}

/// The future of [`wait_signal`] and [`Signals::next`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
struct NextSignal {
    line: Line,
    call: Call,
}

impl Drop for NextSignal {
    fn drop(&mut self) {
        if self.call.is_filed()
            && let Some((Answer::Signal(signal), _)) = self.call.abandon()
        {
            match &self.line {
                Line::Any(_) => gate::post(Post::Keep(signal)),
                Line::Stream(line) => line.keep(signal),
            }
        }
    }
}

impl Future for NextSignal {
    type Output = Result<Signal, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let NextSignal { line, call } = &mut *self;
        let request = || match line {
            Line::Any(set) => Request::Signal(*set),
            Line::Stream(line) => {
                gate::attach(Owned::Stream(line.clone()));
                Request::NextSignal
            }
        };
        call.poll(cx, request).map(|reply| match Error::of(reply)? {
            Answer::Signal(signal) => Ok(signal),
            _ => reply.wrong(),
        })
    }
}
