//! What an owner chooses for a kernel, and why a run can end without an output.

use std::fmt;
use std::io;
use std::time::Duration;

use traps::{Signal, SignalSet};

use crate::registrations::Policy;

/// How a kernel behaves. All of it has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// When descriptors are unregistered.
    pub policy: Policy,
    /// How often the far deadlines are looked through at most; less than 10 ms becomes 10 ms.
    /// `None`: what `TRAPLINE_DEADLINE_TICK_MS` says ([`Real`](crate::Real) only), else 300 ms.
    pub tick: Option<Duration>,
    /// Operations that a task may do before it gives way. 128.
    pub budget: u32,
    /// How long clean-up may take at shutdown, in all. 5 s.
    pub grace: Duration,
    /// How long a shutdown waits for what is held before it cancels. 10 s.
    pub drain: Duration,
    /// Signals that begin a shutdown. None.
    pub shutdown_on: SignalSet,
    /// Worker threads at most. 64.
    pub threads: usize,
    /// How long an idle worker thread stays. 10 s.
    pub idle: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            policy: Policy::Lazy,
            tick: None,
            budget: 128,
            grace: Duration::from_secs(5),
            drain: Duration::from_secs(10),
            shutdown_on: SignalSet::default(),
            threads: 64,
            idle: Duration::from_secs(10),
        }
    }
}

impl Options {
    /// The defaults.
    #[must_use]
    pub fn new() -> Options {
        Options::default()
    }

    /// With another policy.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Options {
        self.policy = policy;
        self
    }

    /// With another tick, whatever the environment says; less than 10 ms becomes 10 ms.
    #[must_use]
    pub fn tick(mut self, tick: Duration) -> Options {
        self.tick = Some(tick);
        self
    }

    /// The tick in force over a machine that asks for `of_machine`.
    pub(crate) fn tick_over(&self, of_machine: Option<Duration>) -> Duration {
        let chosen = self.tick.or(of_machine).unwrap_or(Duration::from_millis(300));
        chosen.max(Duration::from_millis(10))
    }

    /// With another budget; 0 becomes 1.
    #[must_use]
    pub fn budget(mut self, budget: u32) -> Options {
        self.budget = budget.max(1);
        self
    }

    /// With another grace.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Options {
        self.grace = grace;
        self
    }

    /// With another limit of the drain.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Options {
        self.drain = drain;
        self
    }

    /// With a shutdown that begins when one of `signals` arrives, in that very turn; main is told
    /// by [`traps::shutdown::begun`]. Another of them ends the drain. From the first run on they do
    /// not end the process any more.
    #[must_use]
    pub fn shutdown_on(mut self, signals: &[Signal]) -> Options {
        self.shutdown_on = signals.iter().fold(self.shutdown_on, |set, signal| set.with(*signal));
        self
    }

    /// With another number of worker threads; 0 becomes 1.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Options {
        self.threads = threads.max(1);
        self
    }
}

/// Why a kernel stopped without main's output.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The machine below failed; the kernel cannot go on.
    Machine(io::Error),
    /// Every task is blocked and nothing is left that could wake one: the report names each task
    /// and the traps that it is parked in. Only on [`Sim`](crate::Sim).
    Hang(String),
    /// The kernel was shut down, or it failed before.
    Shut,
    /// A shutdown cancelled main, and main did not end within the grace: it was dropped.
    Overdue,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Machine(error) => write!(f, "the machine below the kernel failed: {error}"),
            Error::Hang(report) => write!(f, "every task is blocked for ever:\n{report}"),
            Error::Shut => f.write_str("the kernel was shut down and does not run again"),
            Error::Overdue => f.write_str("main did not end within the grace of the shutdown"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Machine(error) => Some(error),
            Error::Hang(_) | Error::Shut | Error::Overdue => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        match error {
            Error::Machine(error) => error,
            other => io::Error::other(other),
        }
    }
}
