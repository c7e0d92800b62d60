//! The options of a kernel, the errors of a run, and the fixed limits of the kernel.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use std::{fmt, io};

use traps::{Signal, SignalSet};

use crate::trace::Span;

/// The time at which a registration with the poller ends. This is an option so that the policies
/// can be compared. A registration and its end cost a system call each.
///
/// ```
/// use kernel::Policy;
///
/// assert_eq!("next-sleep".parse(), Ok(Policy::NextSleep)); // as in `--policy next-sleep`
/// assert_eq!(Policy::default().to_string(), "lazy");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// After every wake that leaves no task waiting for the descriptor.
    Eager,
    /// When the task next leaves the CPU for another wait, as in Curio.
    NextSleep,
    /// When the handle is closed.
    #[default]
    Lazy,
}

/// Picks the type of a setter's argument: the second type if it is given.
macro_rules! either {
    ($type:ty) => {
        $type
    };
    ($type:ty, $from:ty) => {
        $from
    };
}

/// Declares [`Options`]: each option with its default, and with the type that its setter takes if
/// that differs.
macro_rules! options {
    ($($(#[$doc:meta])* pub $name:ident: $type:ty $([$from:ty])? = $default:expr;)*) => {
        /// The options of a kernel. Each has a default.
        ///
        /// ```
        /// use std::time::Duration;
        /// use kernel::{Kernel, Options, Sim};
        ///
        /// let options = Options::new().threads(4).grace(Duration::from_secs(1));
        /// assert_eq!(options.budget, 128); // the default
        /// let mut kernel = Kernel::with_options(Sim::new(), options);
        /// kernel.run(async {}).unwrap();
        /// ```
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub struct Options {
            $($(#[$doc])* pub $name: $type,)*
            /// The signals that begin a shutdown. Default: none.
            pub shutdown_on: SignalSet,
            /// The file that `kernel::main` creates for the trace. Default: none.
            pub trace: Option<PathBuf>,
        }

        impl Default for Options {
            fn default() -> Options {
                Options { $($name: $default,)* shutdown_on: SignalSet::default(), trace: None }
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
    /// The time at which descriptors are unregistered. Default: [`Policy::Lazy`].
    pub policy: Policy = Policy::Lazy;
    /// The number of I/O operations without a wait after which a task yields. Default: 128. The
    /// minimum is 2, because a check for readiness and a read are two operations.
    pub budget: u32 = 128;
    /// The shortest time between two scans of the table of connection deadlines; at least 10 ms.
    /// Default: `None`, which means `TRAPLINE_DEADLINE_TICK_MS` ([`Real`](crate::Real) only) or, if
    /// the variable is not set, 300 ms.
    pub tick: Option<Duration> [Duration] = None;
    /// The timer slack: a kernel that has nothing else to do waits until its earliest timer is due
    /// and this much longer, and then fires all timers that are due. Default: zero.
    ///
    /// So the slack makes no sleep or timeout early, and each later by at most the slack. In
    /// exchange, timers that are due within the slack share a turn and its system calls. A turn
    /// that comes for another reason fires all timers that are due, whatever the slack. Connection
    /// deadlines have the [`tick`](Options::tick) instead. Linux has the same option for the timers
    /// of a thread, `PR_SET_TIMERSLACK`.
    pub timer_slack: Duration = Duration::ZERO;
    /// The time that a shutdown waits for holds before it cancels the tasks. Default: 10 s.
    pub drain: Duration = Duration::from_secs(10);
    /// The longest time that the cleanup and the halt of a shutdown may take together. Default: 5
    /// s.
    pub grace: Duration = Duration::from_secs(5);
    /// The largest number of worker threads, and so of jobs that run at a time; further jobs wait
    /// in a queue. Default: 64. At least 1, and at most 65,536. Threads start when they are needed.
    pub threads: usize = 64;
    /// The time after which an idle worker thread ends. Default: 10 s.
    pub idle: Duration = Duration::from_secs(10);
    /// The duration above which a run gets a `longrun` line. The line names the task, and the traps
    /// at which the run began and ended. Default: 50 ms. With `None`, the kernel reads no clock for
    /// it.
    ///
    /// On [`Real`](crate::Real) the coarse clock measures the runs, with one reading per run. It is
    /// exact to a tick of that clock (4 ms at 250 ticks a second). The line also has an upper bound
    /// of the CPU time, because on a busy host other processes may have had the CPU. On
    /// [`Sim`](crate::Sim) the duration is exact. Small work that needs no thread, such as parsing
    /// a few kilobytes, is far below the default.
    ///
    /// On [`Real`](crate::Real), a debug build without a logger writes runs of 100 ms and more to
    /// standard error, once for each call site at which such a run began.
    pub longrun: Option<Duration> = Some(Duration::from_millis(50));
    /// The duration above which a watchdog thread reports a run, while the run lasts. The report
    /// has the CPU time used so far. It is a warning in the log and goes to
    /// [`Kernel::on_stuck`](crate::Kernel::on_stuck), but never into the trace. At least 1 ms.
    /// Default: `None`, which means no thread.
    ///
    /// The watchdog checks four times per duration, by the real clock, so it is late by up to a
    /// quarter. Each run costs a lock and two atomic stores. The thread starts with the first run
    /// and ends with the kernel. Time that the kernel itself takes, or that passes between two
    /// calls of `run`, is not reported.
    pub watchdog: Option<Duration> = None;
}

impl Options {
    /// Returns the default options.
    #[must_use]
    pub fn new() -> Options {
        Options::default()
    }

    /// Makes the kernel begin a shutdown when one of `signals` arrives, in the same turn. Each
    /// further signal ends the present phase of the shutdown. From the first run on, these signals
    /// no longer end the process. The kernel takes a signal between two runs of tasks. So if a task
    /// computes forever, these signals have no effect, but `SIGQUIT`, `Ctrl-\`, ends the process if
    /// it is not among them.
    ///
    /// The shutdown cancels main like any other task, as soon as no task has a
    /// [hold](traps::shutdown::hold): main's next trap returns the interrupt. But if main has asked
    /// about the shutdown before, the drain lasts until main has ended, up to its limit. Main asks
    /// by [`has_begun`](traps::shutdown::has_begun), [`begun`](traps::shutdown::begun) or
    /// [`until_begun`](traps::shutdown::until_begun), and the accept loop of a server asks for it.
    /// The calls and the holds of other tasks do not count for main: when they have ended, main is
    /// cancelled. If main has work to do after it has joined them, main takes a hold, too.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Kernel, Options, Sim};
    /// use traps::{Signal, Time, sleep};
    ///
    /// let second = Duration::from_secs(1);
    /// let sim = Sim::new().signal_at(Time::ZERO + second, Signal::Terminate);
    /// let options = Options::new().shutdown_on(&[Signal::Interrupt, Signal::Terminate]);
    /// let mut kernel = Kernel::with_options(sim, options);
    /// let main = kernel.run(async {
    ///     let interrupt = sleep(60 * second).await.unwrap_err();
    ///     sleep(second).await?; // clean-up may wait
    ///     Err::<(), _>(interrupt)
    /// });
    /// assert!(main.unwrap().unwrap_err().is_cancelled());
    /// ```
    #[must_use]
    pub fn shutdown_on(mut self, signals: &[Signal]) -> Options {
        self.shutdown_on = signals.iter().copied().fold(self.shutdown_on, SignalSet::with);
        self
    }

    /// Makes [`main`](crate::main()) create the file `path`, and write the trace into it. A program
    /// that makes its kernel itself calls [`Kernel::trace_to`](crate::Kernel::trace_to).
    #[must_use]
    pub fn trace(mut self, path: impl Into<PathBuf>) -> Options {
        self.trace = Some(path.into());
        self
    }

    /// Returns the options within their bounds: a value out of bounds is no error, because a tool
    /// may pass on the number of a user. `of_machine` is the tick that the machine asks for.
    pub(crate) fn in_bounds(mut self, of_machine: Option<Duration>) -> Options {
        self.tick = Some(self.tick.or(of_machine).unwrap_or(TICK).max(LEAST_TICK));
        self.budget = self.budget.max(2);
        self.threads = self.threads.clamp(1, MOST_THREADS);
        self
    }

    /// Returns the tick of the deadline table that is in force.
    #[inline]
    pub(crate) fn tick_in_force(&self) -> Duration {
        self.tick.unwrap_or(TICK)
    }

    /// Describes the options in one line, for the `boot` line of a timed trace.
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

/// The reason why a kernel stopped without main's output. (The error of an operation inside a task
/// is [`traps::Error`].)
///
/// ```
/// use kernel::{Kernel, RunError, Sim};
///
/// let mut kernel = Kernel::new(Sim::new());
/// let hang = kernel.run(traps::foreign(std::future::pending::<()>())).unwrap_err();
/// let RunError::Hang(report) = hang else { panic!("{hang}") };
/// assert!(report.contains("main")); // the table of tasks
/// ```
#[non_exhaustive]
pub enum RunError {
    /// The machine below the kernel failed, so the kernel cannot continue.
    Machine(io::Error),
    /// Every task is blocked, and nothing is left that could wake a task. The report is the table
    /// of tasks; it marks the tasks that wait for each other in a circle.
    ///
    /// On [`Real`](crate::Real) a run ends so if no thread, waker, signal or descriptor could wake
    /// a task, no [`Remote`](crate::Remote) exists, and [`Options::shutdown_on`] is empty. The
    /// kernel checks this before it sleeps. Two hangs escape the check. It counts wakers, not their
    /// holders, so a task at a universal queue counts as one that can be woken, even if only
    /// blocked tasks have the queue. And it does not check again when another thread drops the last
    /// waker.
    Hang(String),
    /// The kernel has been shut down already, or its machine has failed.
    Shut,
    /// A shutdown cancelled main, and dropped it, because it did not end within the grace period or
    /// before the next signal.
    Overdue,
    /// A replay differs from its record. The report shows the line of the record, the program's own
    /// line, and the call site.
    Diverged(String),
    /// The log of a replay has ended before the line of
    /// [`Kernel::stop_at`](crate::Kernel::stop_at).
    Unreached(String),
    /// A replay has stopped, because its record ends, or at the line of
    /// [`Kernel::stop_at`](crate::Kernel::stop_at). The report has the table of tasks.
    Stopped(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Machine(error) => write!(f, "the machine below the kernel failed: {error}"),
            RunError::Hang(report) => write!(f, "every task is blocked forever:\n{report}"),
            RunError::Shut => f.write_str("the kernel was shut down and does not run again"),
            RunError::Diverged(report) => {
                write!(f, "the program differs from its record\n{report}")
            }
            RunError::Stopped(report) | RunError::Unreached(report) => f.write_str(report),
            RunError::Overdue => f.write_str("main was cancelled, did not end, and was dropped"),
        }
    }
}

/// Prints the error as `Display` does, so that a `main` that returns it prints a readable report.
impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Machine(error) => Some(error),
            _ => None,
        }
    }
}

impl From<RunError> for io::Error {
    fn from(error: RunError) -> io::Error {
        match error {
            RunError::Machine(error) => error,
            other => io::Error::other(other),
        }
    }
}

/// The default tick of the deadline table.
pub(crate) const TICK: Duration = Duration::from_millis(300);

/// The shortest tick of the deadline table: scans must be rare compared with the deadlines that
/// they look for.
pub(crate) const LEAST_TICK: Duration = Duration::from_millis(10);

/// The largest number of turns in a row that do not wait for the machine, while tasks only hand
/// work to each other. If the coarse clock moves, the next turn waits.
pub(crate) const SKIPPED: u32 = 61;

/// The largest number of arrivals that one wait returns; the next wait returns the others.
pub(crate) const ARRIVALS: usize = 1024;

/// The largest number of signal listeners in a process, one for each kernel that waits for signals.
pub(crate) const LISTENERS: usize = 64;

/// The largest number of worker threads, whatever the option says.
pub(crate) const MOST_THREADS: usize = 1 << 16;

/// The pause between a failed attempt to start a thread and the next attempt.
pub(crate) const THREAD_PAUSE: Duration = Duration::from_millis(100);

/// The time after which a halt that waits for jobs looks for a signal again.
pub(crate) const HALT_PAUSE: Duration = Duration::from_millis(100);

/// The stack size of a worker thread, in bytes.
pub(crate) const WORKER_STACK: usize = 2 << 20;
