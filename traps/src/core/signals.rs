//! Signals of the process, as plain data: which there are, and what a stream of them keeps.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::rc::Rc;

use super::queue::{Label, Queue};

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

    /// Takes the lowest number of those that are also in `wanted`.
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

/// What a kernel and those who wait for signals share: what has arrived and was not taken, and the
/// queue of those who wait.
#[derive(Debug)]
pub struct SignalLine {
    /// The signals that it is for. A kernel's own line is for all that were ever waited for.
    pub wanted: Cell<SignalSet>,
    /// Arrived, and not taken yet: of each signal at most one.
    pub kept: Cell<SignalSet>,
    /// Signals that the system refused to report, and why: one entry for each wait.
    pub refused: RefCell<Vec<(Signal, io::Error)>>,
    /// Those who wait.
    pub queue: Rc<Queue>,
}

impl SignalLine {
    /// A line for these signals.
    #[must_use]
    pub fn new(wanted: SignalSet) -> SignalLine {
        SignalLine {
            wanted: Cell::new(wanted),
            kept: Cell::default(),
            refused: RefCell::default(),
            queue: Rc::new(Queue::labelled(Label::Signal)),
        }
    }

    /// Takes the reason why one of `wanted` was refused.
    #[must_use]
    pub fn take_refusal(&self, wanted: SignalSet) -> Option<io::Error> {
        let mut refused = self.refused.borrow_mut();
        let place = refused.iter().position(|(signal, _)| wanted.contains(*signal))?;
        Some(refused.remove(place).1)
    }

    /// Takes the lowest number of `wanted` that has arrived.
    #[must_use]
    pub fn take(&self, wanted: SignalSet) -> Option<Signal> {
        let mut kept = self.kept.get();
        let found = kept.take(wanted);
        self.kept.set(kept);
        found
    }
}
