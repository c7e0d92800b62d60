//! What an owner chooses for a kernel, and why a run can end without an output.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use traps::{Signal, SignalSet};

use crate::core::handles::Policy;
use crate::limits::{LEAST_TICK, MOST_THREADS, TICK};
use crate::trace::Span;

/// The second type, if there are two.
macro_rules! either {
    ($type:ty) => {
        $type
    };
    ($type:ty, $from:ty) => {
        $from
    };
}

/// Declares [`Options`]: each with its default, what its setter takes if that is another
/// type.
macro_rules! options {
    ($($(#[$doc:meta])* pub $name:ident: $type:ty $([$from:ty])? = $default:expr;)*) => {
        /// How a kernel behaves. All of it has a default.
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub struct Options {
            $($(#[$doc])* pub $name: $type,)*
            /// Signals that begin a shutdown. None.
            pub shutdown_on: SignalSet,
        }

        impl Default for Options {
            fn default() -> Options {
                Options { $($name: $default,)* shutdown_on: SignalSet::default() }
            }
        }

        impl Options {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(mut self, $name: either!($type $(, $from)?)) -> Options {
                    self.$name = $name.into();
                    self
                }
            )*
        }
    };
}

options! {
    /// When descriptors are unregistered. [`Policy::Lazy`].
    pub policy: Policy = Policy::Lazy;
    /// Operations of I/O that never blocks, before a task gives way. 128; less than 2 becomes 2,
    /// which is what it takes to look whether something is there and to read it.
    pub budget: u32 = 128;
    /// How often the table of connection deadlines is scanned at most; less than 10 ms becomes
    /// 10 ms. `None`: what `TRAPLINE_DEADLINE_TICK_MS` says ([`Real`](crate::Real) only), else
    /// 300 ms.
    pub tick: Option<Duration> [Duration] = None;
    /// How long a shutdown waits for what is held before it cancels. 10 s.
    pub drain: Duration = Duration::from_secs(10);
    /// How long clean-up may take at shutdown, in all. 5 s.
    pub grace: Duration = Duration::from_secs(5);
    /// Worker threads at most, and so jobs that run at one time; further jobs wait in line. 64;
    /// 0 becomes 1, more than 65,536 become that. Threads start when they are needed.
    pub threads: usize = 64;
    /// How long an idle worker thread stays. 10 s.
    pub idle: Duration = Duration::from_secs(10);
    /// A run that is longer has a `longrun` line, which names the task, the trap that it ran from
    /// and the one that it ran to. 50 ms; `None`: no clock is read for it.
    ///
    /// On [`Real`](crate::Real) a run is measured by the coarse clock, once a run: to a tick of
    /// that clock (at 250 ticks a second: 4 ms). On [`Sim`](crate::Sim) it is exact. Small work
    /// that needs no thread, such as parsing a few kilobytes, is far below the default.
    pub longrun: Option<Duration> = Some(Duration::from_millis(50));
    /// A thread that looks from outside and says when a task holds the CPU for longer than this,
    /// while it does: as a warning in the log and to
    /// [`Kernel::on_stuck`](crate::Kernel::on_stuck); never in the trace. Less than 1 ms becomes
    /// 1 ms. `None`: no thread.
    ///
    /// It looks four times a span, by the real clock, so it is late by a quarter. Each run pays for
    /// a lock and two atomic stores. The thread starts with the first run and ends with the kernel.
    /// What holds the CPU outside any run, in the kernel or between two calls of `run`, is not
    /// seen.
    pub watchdog: Option<Duration> = None;
}

impl Options {
    /// The defaults.
    #[must_use]
    pub fn new() -> Options {
        Options::default()
    }

    /// With a shutdown that begins when one of `signals` arrives, in that very turn; main is told
    /// by [`traps::shutdown::begun`]. Another of them ends the drain. From the first run on they
    /// do not end the process any more.
    #[must_use]
    pub fn shutdown_on(mut self, signals: &[Signal]) -> Options {
        self.shutdown_on = signals.iter().copied().fold(self.shutdown_on, SignalSet::with);
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
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Policy::Eager => "eager",
            Policy::NextSleep => "next-sleep",
            Policy::Lazy => "lazy",
        })
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        match text {
            "eager" => Ok(Policy::Eager),
            "next-sleep" => Ok(Policy::NextSleep),
            "lazy" => Ok(Policy::Lazy),
            other => Err(format!("expected eager, next-sleep or lazy, not `{other}`")),
        }
    }
}

/// Why a kernel stopped without main's output.
#[non_exhaustive]
pub enum Error {
    /// The machine below failed; the kernel cannot go on.
    Machine(io::Error),
    /// Every task is blocked and nothing is left that could wake one. The report is the table of
    /// tasks, with those that wait for each other in a circle. On [`Real`](crate::Real) it is given
    /// if no thread, waker, signal or descriptor could wake a task, no [`Remote`](crate::Remote)
    /// exists, and [`Options::shutdown_on`] is empty.
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

/// As it is displayed: a `main` that returns the error prints a report that can be read.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
