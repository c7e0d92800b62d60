//! Signals of the process as plain data: the signals that exist, and the state of a stream of
//! signals.

use std::cell::Cell;
use std::rc::Rc;
use std::{fmt, io};

use crate::core::table::{Label, Queue};

/// A signal that a task can wait for. Other signals keep their effect on the process. A later
/// release may add signals.
///
/// ```
/// assert_eq!(traps::Signal::Terminate.to_string(), "SIGTERM");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Signal {
    /// `SIGHUP`
    Hangup,
    /// `SIGINT`, Ctrl-C.
    Interrupt,
    /// `SIGQUIT`, `Ctrl-\`. Without a wait for it, it ends the process with a core dump.
    Quit,
    /// `SIGUSR1`
    User1,
    /// `SIGUSR2`
    User2,
    /// `SIGTERM`
    Terminate,
    /// `SIGCHLD`: a child process has ended, stopped or continued. Several children that end at
    /// once can send one signal. `net::process` does not need it.
    Child,
    /// `SIGWINCH`: the size of the terminal's window has changed.
    Window,
}

impl Signal {
    /// All signals, in the order of their numbers on Linux.
    pub const ALL: &'static [Signal] = &[
        Signal::Hangup,
        Signal::Interrupt,
        Signal::Quit,
        Signal::User1,
        Signal::User2,
        Signal::Terminate,
        Signal::Child,
        Signal::Window,
    ];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Writes the name from the manual, such as `SIGINT`.
impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Signal::Hangup => "SIGHUP",
            Signal::Interrupt => "SIGINT",
            Signal::Quit => "SIGQUIT",
            Signal::User1 => "SIGUSR1",
            Signal::User2 => "SIGUSR2",
            Signal::Terminate => "SIGTERM",
            Signal::Child => "SIGCHLD",
            Signal::Window => "SIGWINCH",
        })
    }
}

/// A set of signals, in one byte.
///
/// ```
/// use traps::{Signal, SignalSet};
///
/// let set: SignalSet = [Signal::Terminate, Signal::Hangup].into_iter().collect();
/// assert!(set.contains(Signal::Hangup) && !set.contains(Signal::User1));
/// assert!(set.without(Signal::Hangup).iter().eq([Signal::Terminate]));
/// assert!(set.with(Signal::User1).contains(Signal::User1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SignalSet(u8);

impl SignalSet {
    /// Returns whether the set contains `signal`.
    #[must_use]
    pub fn contains(self, signal: Signal) -> bool {
        self.0 & signal.bit() != 0
    }

    /// Returns the set with `signal` added.
    #[must_use]
    pub fn with(self, signal: Signal) -> SignalSet {
        SignalSet(self.0 | signal.bit())
    }

    /// Returns the set with `signal` removed.
    #[must_use]
    pub fn without(self, signal: Signal) -> SignalSet {
        SignalSet(self.0 & !signal.bit())
    }

    /// Iterates over the signals of the set, the lowest number first.
    pub fn iter(self) -> impl Iterator<Item = Signal> {
        Signal::ALL.iter().copied().filter(move |signal| self.contains(*signal))
    }

    /// Takes the lowest-numbered signal that is also in `wanted`.
    pub fn take(&mut self, wanted: SignalSet) -> Option<Signal> {
        let found = self.iter().find(|signal| wanted.contains(*signal))?;
        *self = self.without(found);
        Some(found)
    }
}

impl FromIterator<Signal> for SignalSet {
    fn from_iter<I: IntoIterator<Item = Signal>>(signals: I) -> SignalSet {
        signals.into_iter().fold(SignalSet::default(), SignalSet::with)
    }
}

/// The place where a wait finds the error if the system refuses to report its signals. Each wait
/// has its own, so that no later wait gets the error of one that was dropped.
pub type Refusal = Rc<Cell<Option<io::Error>>>;

/// The state that a kernel shares with the tasks that wait for signals: the signals that have
/// arrived and were not taken yet, and a queue of waits.
#[derive(Debug)]
pub struct SignalInbox {
    /// The signals that are delivered to this inbox. A kernel's own inbox has all signals that
    /// a task ever waited for and the system has not refused.
    pub wanted: Cell<SignalSet>,
    /// The signals that have arrived and were not taken yet, at most one of each.
    pub kept: Cell<SignalSet>,
    /// The waits for a signal.
    pub queue: Rc<Queue>,
}

impl SignalInbox {
    /// Makes an inbox for the signals in `wanted`.
    #[must_use]
    pub fn new(wanted: SignalSet) -> SignalInbox {
        SignalInbox {
            wanted: Cell::new(wanted),
            kept: Cell::default(),
            queue: Rc::new(Queue::labelled(Label::Signal)),
        }
    }

    /// Takes the lowest-numbered signal of `wanted` that has arrived.
    #[must_use]
    pub fn take(&self, wanted: SignalSet) -> Option<Signal> {
        let mut kept = self.kept.get();
        let found = kept.take(wanted);
        self.kept.set(kept);
        found
    }
}
