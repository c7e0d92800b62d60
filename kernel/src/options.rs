//! What an owner chooses for a kernel, and why a run can end without an output.

use std::fmt;
use std::io;
use std::time::Duration;

use traps::{Signal, SignalSet};

use crate::limits::{LEAST_TICK, MOST_THREADS, TICK};
use crate::registrations::Policy;
use crate::trace::Span;

/// How a kernel behaves. All of it has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// When descriptors are unregistered.
    pub policy: Policy,
    /// How often the table of connection deadlines is scanned at most; less than 10 ms becomes
    /// 10 ms. `None`: what `TRAPLINE_DEADLINE_TICK_MS` says ([`Real`](crate::Real) only), else
    /// 300 ms.
    pub tick: Option<Duration>,
    /// Operations that a task may do before it gives way. 128.
    pub budget: u32,
    /// How long clean-up may take at shutdown, in all. 5 s.
    pub grace: Duration,
    /// How long a shutdown waits for what is held before it cancels. 10 s.
    pub drain: Duration,
    /// Signals that begin a shutdown. None.
    pub shutdown_on: SignalSet,
    /// Worker threads at most, and so jobs that run at one time: the tokens. 64.
    pub threads: usize,
    /// How long an idle worker thread stays. 10 s.
    pub idle: Duration,
    /// A run that is longer is a `longrun` line. 50 ms; `None`: no clock is read for it.
    pub longrun: Option<Duration>,
    /// A run that lasts longer is said by a thread of its own while it lasts. `None`: no thread.
    pub watchdog: Option<Duration>,
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
            longrun: Some(Duration::from_millis(50)),
            watchdog: None,
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

    /// As they are in force over a machine that asks for this tick.
    pub(crate) fn in_bounds(mut self, of_machine: Option<Duration>) -> Options {
        self.tick = Some(self.tick.or(of_machine).unwrap_or(TICK).max(LEAST_TICK));
        self.budget = self.budget.max(2);
        self.threads = self.threads.clamp(1, MOST_THREADS);
        self
    }

    /// The tick in force.
    #[inline]
    pub(crate) fn tick_in_force(&self) -> Duration {
        self.tick.unwrap_or(TICK)
    }

    /// In words, for the first line of a timed trace.
    pub(crate) fn facts(&self, clock: &str) -> String {
        let Options { policy, budget, grace, threads, longrun, watchdog, .. } = self;
        let span = |span: &Option<Duration>| {
            span.map_or_else(|| "off".to_owned(), |span| Span(span).to_string())
        };
        let (longrun, watchdog) = (span(longrun), span(watchdog));
        let (tick, grace) = (Span(self.tick_in_force()), Span(*grace));
        format!(
            "clock={clock} policy={policy} tick={tick} budget={budget} grace={grace} \
             threads={threads} longrun={longrun} watchdog={watchdog}"
        )
    }

    /// With another budget; less than 2 becomes 2, which is what it takes to look whether something
    /// is there and to read it.
    #[must_use]
    pub fn budget(mut self, budget: u32) -> Options {
        self.budget = budget;
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
        self.shutdown_on = signals.iter().copied().fold(self.shutdown_on, SignalSet::with);
        self
    }

    /// With another number of worker threads, each of which is a token for a job; further jobs wait
    /// in line. 0 becomes 1, more than 65,536 become that. Threads start when they are needed.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Options {
        self.threads = threads;
        self
    }

    /// With another span for which a worker thread without a job stays.
    #[must_use]
    pub fn idle(mut self, idle: Duration) -> Options {
        self.idle = idle;
        self
    }

    /// With another limit for a run, or none: one that is longer has a `longrun` line, which names
    /// the task, the trap that it ran from and the one that it ran to.
    ///
    /// On [`Real`](crate::Real) a run is measured by the coarse clock, once a run: no line for one
    /// that kept to the limit, and surely one for a run that was two ticks of that clock longer
    /// (at 250 ticks a second: 8 ms). On [`Sim`](crate::Sim) it is exact. Small work that needs no
    /// thread, such as parsing a few kilobytes, is far below the default.
    #[must_use]
    pub fn longrun(mut self, limit: Option<Duration>) -> Options {
        self.longrun = limit;
        self
    }

    /// With a thread, or none, that looks from outside and says when a task holds the CPU for
    /// longer than `span`, while it does: as a warning in the log and to
    /// [`Kernel::on_stuck`](crate::Kernel::on_stuck); never in the trace. Less than 1 ms becomes
    /// 1 ms.
    ///
    /// It looks four times a span, by the real clock, while tasks run, so it is late by a quarter;
    /// it sleeps while the kernel does. Each run pays for two atomic stores, and for a lock where
    /// it is another task's than the run before. The thread starts with the first run and ends with
    /// the kernel; it gets no signals. What holds the CPU outside any run, in the kernel or between
    /// two calls of `run`, is not seen.
    #[must_use]
    pub fn watchdog(mut self, span: Option<Duration>) -> Options {
        self.watchdog = span;
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
