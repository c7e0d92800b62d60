//! Tests of programs on the virtual clock: no waiting, no flakes, nothing left unnoticed.
//!
//! [`run`] runs a main future on a [`Sim`] and shuts down. It panics with the trace if the program
//! does anything that is always wrong: if it hangs, if it leaves something behind, if a task panics
//! and no join returns the panic, or if its trace breaks a promise of the [log](kernel::trace). The
//! test asserts everything else:
//!
//! ```
//! use std::time::Duration;
//! use traps::{Kind, sleep, timeout_after};
//!
//! let second = Duration::from_secs(1);
//! let ran = testing::run(async {
//!     timeout_after(second, sleep(60 * second)).await
//! });
//! assert_eq!(ran.output.unwrap_err().kind(), Kind::TaskTimeout);
//! assert_eq!(ran.took, second); // by the kernel's clock; the test itself took no time
//! ```
//!
//! | feature | adds |
//! |---|---|
//! | `trace` (on by default) | the log of the kernel under test, by the feature `trace` of `kernel`; without it no run can be checked |
//!
//! # The world of a test
//!
//! [`Setup`] takes a [`Sim`] and [`Options`]. The [`Sim`] is the world: a clock that jumps to the
//! next due time, and a script.
//!
//! - **The clock.** It moves only when every task waits. [`Sim::clock`] is a handle to it:
//!   `advance` lets time pass while a task holds the CPU, as a long computation does;
//!   [`Sim::late_by`] makes every deadline fire late, as a busy machine does; [`Sim::seed`]
//!   shuffles the arrivals of one instant.
//! - **Readiness.** `Io::new(Scripted(7))` waits like a socket; [`Sim::ready_at`] sets when it
//!   becomes ready. It has no bytes.
//! - **Signals and threads.** [`Sim::signal_at`] sends a signal. After [`Sim::jobs_take`] a job of
//!   `run_in_thread` takes that long by the script. Otherwise it runs on a real thread, and the
//!   clock does not move until its result is back.
//! - **Sockets.** A [`Sim`] has none: using a socket is an error. Write protocol code over any
//!   `net::Stream` or `net::datagrams::Datagrams`, or [replay](replay()) a recorded run.
//! - **Streams.** `net::pipe::duplex` is a pair of ends in memory: give one to the protocol code,
//!   and let the test use the other as the peer. `set_short_reads` splits the bytes as a network
//!   may.
//! - **Datagrams.** A `net::datagrams::Network` has sockets in memory, with the addresses that the
//!   test chooses. `lose_next` loses datagrams.
//! - **Processes.** `net::process::Process::simulated` makes a process in memory, and the end with
//!   which the test acts as this process. Pass the function that starts processes to the program.
//!
//! ```
//! use std::time::Duration;
//! use kernel::Sim;
//! use testing::Setup;
//! use traps::Time;
//! use traps::io::{Direction, Io, Scripted};
//!
//! const MS: Duration = Duration::from_millis(1);
//!
//! let sim = Sim::new().ready_at(Time::ZERO + 5 * MS, 7, Direction::Read);
//! let ran = Setup::new().sim(sim).run(async {
//!     let socket = Io::new(Scripted(7));
//!     socket.readable().await.unwrap();
//! });
//! assert_eq!(ran.took, 5 * MS);
//! ```
//!
//! # The trace as an oracle
//!
//! [`Ran::trace`] is the stable trace, the same bytes on every machine. Keep it in a file and
//! compare it, so that each change in the order of events is a diff that must be explained. (`at=`
//! names lines of the test's source.) [`Ran::counters`] has the costs: traps, turns, waits on the
//! machine.
//!
//! # Interrupted anywhere
//!
//! [`sweep`] runs a program once for each of its traps and interrupts it there, by a cancellation
//! and by a timeout. It tests whether the program can be interrupted safely anywhere.
//!
//! # Every liberty
//!
//! [`explore`](fn@explore) runs a program once for each seed, and the seed makes every decision
//! that the program does not make. These are the [liberties](Liberty):
//!
//! | liberty | is | usual |
//! |---|---|---|
//! | `order` | the order in which the ready tasks of a turn run | as they became ready |
//! | `arrivals` | the order of arrivals at one instant | that of the script |
//! | `lateness` | how late the machine notices that time has passed, up to 33 ms: at the end of a wait, and between two turns in which tasks run | not at all |
//! | `readiness` | whether a registered descriptor becomes ready although nothing happened | no |
//! | `lengths` | how few bytes a read or a write of a `net::pipe` moves, at least one | all |
//! | `jobs` | how much longer a job of `run_in_thread` takes, up to a second | no longer |
//!
//! The kernel promises first come, first served, so a program may rely on that; for such a program
//! leave `order` out with [`Explore::without`]. The other liberties belong to the world, and every
//! program must tolerate them. In particular, a sleep then takes at least its duration, but not
//! exactly.
//!
//! All jobs follow the script, as after [`Sim::jobs_take`], so none may wait for another thread.
//!
//! The second line of the log is a remark, `# explored seed=17 liberties=order decisions=23`: this
//! [`Case`] is enough to repeat the run. If `order` is among the liberties, the rule `fifo` of the
//! [checker](trace::Checker::remark) does not apply.
//!
//! # Logs
//!
//! [`trace`](mod@trace) reads the text of a log, line by line, and checks it.
//!
//! # Recorded runs
//!
//! [`replay`] runs a program again from a record that
//! [`Kernel::record_to`](kernel::Kernel::record_to) has made with the default options. For other
//! options, such as those of the examples with `--record`, use [`Setup::replay`] with the same
//! options. So a run that went wrong becomes a test, on any machine, without its clients. The test
//! fails if the program behaves differently. [`Replayed::trace`] is the log of the run.
//!
//! # Programs
//!
//! [`child`] starts a program, such as a server, as a user does, and ensures that it ends.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod child;
mod explore;
mod sweep;
pub mod trace;
mod truth;

use std::any::Any;
use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
#[cfg(unix)]
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use kernel::{Counters, Kernel, Options, Sim};
use traps::Site;
use traps::internal::panic_message;

pub use explore::{Case, Explore, Explored, Found, explore};
pub use kernel::Injected;
use sweep::Watch;
pub use sweep::{Injection, Sweep, Swept, Trap, sweep};
use trace::Checker;
pub use traps::internal::liberty::Liberty;
pub use truth::Truth;

/// A run with more events than this counts as endless.
const LIMIT: u64 = 1_000_000;

/// The number of lines of a trace, the last ones, that a message shows.
const SHOWN: usize = 400;

/// Runs `main` on a new [`Sim`] with the default options; see [`Setup::run`].
///
/// # Panics
///
/// As [`Setup::run`] does.
#[track_caller]
pub fn run<F: Future>(main: F) -> Ran<F::Output> {
    Setup::new().run(main)
}

/// The result of a program.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ran<T> {
    /// Main's output.
    pub output: T,
    /// The duration by the kernel's clock, up to the end of main, without the shutdown.
    pub took: Duration,
    /// The stable trace, including its header and the shutdown.
    pub trace: String,
    /// The counters after the shutdown: the gauges are zero, and the totals are the costs of the
    /// run.
    pub counters: Counters,
}

/// Runs `main` again from a record that was made with the default options; see [`Setup::replay`].
///
/// # Panics
///
/// Panics in the same cases as [`Setup::replay`].
#[cfg(unix)]
#[track_caller]
pub fn replay<F: Future>(record: impl AsRef<Path>, main: F) -> Replayed<F::Output> {
    Setup::new().replay(record, main)
}

/// The result of a replay.
#[cfg(unix)]
#[derive(Debug)]
#[non_exhaustive]
pub struct Replayed<T> {
    /// Main's output.
    pub output: T,
    /// The log, including its header and the shutdown, as the recorded run wrote it or would have
    /// written it.
    pub trace: String,
}

/// The settings of a run. Each has a default.
#[derive(Debug, Default)]
pub struct Setup {
    sim: Sim,
    options: Options,
    limit: Option<u64>,
    panics_allowed: bool,
    /// A line for the header of the trace.
    remark: Option<String>,
}

impl Setup {
    /// A [`Sim`] without a script, and the default [`Options`].
    #[must_use]
    pub fn new() -> Setup {
        Setup::default()
    }

    /// On this machine.
    #[must_use]
    pub fn sim(mut self, sim: Sim) -> Setup {
        self.sim = sim;
        self
    }

    /// With these options.
    #[must_use]
    pub fn options(mut self, options: Options) -> Setup {
        self.options = options;
        self
    }

    /// Sets the number of events above which a run counts as endless. The default is a million.
    #[must_use]
    pub fn limit(mut self, events: u64) -> Setup {
        self.limit = Some(events);
        self
    }

    /// Lets tasks panic although no join returns the panic, for a test of such a program.
    ///
    /// ```
    /// use testing::Setup;
    /// use traps::spawn;
    ///
    /// let ran = Setup::new().panics_allowed().run(async {
    ///     spawn("fails", async { panic!("no such number") }).detached().await;
    ///     "main continues"
    /// });
    /// assert_eq!(ran.output, "main continues");
    /// ```
    #[must_use]
    pub fn panics_allowed(mut self) -> Setup {
        self.panics_allowed = true;
        self
    }

    /// Runs `main` on a kernel, shuts the kernel down, and checks the run.
    ///
    /// # Panics
    ///
    /// Panics with main's panic, after printing the trace, and in the same way if the run is
    /// endless. Panics with the trace in the message if the program hangs, if the trace breaks a
    /// promise, or if tasks, tickets, scopes, timers, registrations, handles, jobs or interrupts
    /// are left after the shutdown. (A handle in main's output counts as left.)
    ///
    /// Also panics if a task has panicked and no join has returned the panic: the task was
    /// detached, for example, or its handle was dropped or only awaited with
    /// [`wait`](traps::Task::wait). The log does not show the joins of a
    /// [`RemoteTask`](kernel::RemoteTask), so they do not count. A test that expects such a panic
    /// calls [`Setup::panics_allowed`].
    ///
    /// ```should_panic
    /// testing::run(async {
    ///     let task = traps::spawn("checks", async { assert_eq!(1, 2) }).await;
    ///     task.wait().await.unwrap(); // `task.join()` would return the panic
    /// });
    /// ```
    #[track_caller]
    pub fn run<F: Future>(self, main: F) -> Ran<F::Output> {
        match self.live(Watch::default(), main, Location::caller()) {
            Ok(lived) => lived.ran,
            Err(failure) => failure.raise(),
        }
    }

    /// Runs `main` again from a record, without a socket, a clock or a thread, and shuts the kernel
    /// down. The options must be those of the recorded kernel; the machine is that of the record.
    ///
    /// # Panics
    ///
    /// Panics if the file is not a record or was made with other options, and with main's panic.
    /// Panics with the first difference if the program differs from the record, and with the table
    /// of tasks if the record ends before the program does.
    #[cfg(unix)]
    #[track_caller]
    pub fn replay<F: Future>(self, record: impl AsRef<Path>, main: F) -> Replayed<F::Output> {
        let (record, site) = (record.as_ref(), Location::caller());
        let text = Text { remark: self.remark, ..Text::default() };
        let replayed = Kernel::replay(record, self.options).map_err(kernel::RunError::Machine);
        let replayed = replayed.and_then(|mut kernel| {
            kernel.trace_to(text.clone());
            let output = kernel.run_from(main, site)?;
            kernel.shutdown()?;
            Ok(output)
        });
        match replayed {
            Ok(output) => Replayed { output, trace: text.take() },
            Err(error) => panic!("{}: {error}", record.display()),
        }
    }

    /// The whole life of a kernel.
    fn live<F: Future>(
        self,
        watch: Watch,
        main: F,
        site: Site,
    ) -> Result<Lived<F::Output>, Failure> {
        let Setup { sim, options, limit, panics_allowed, remark } = self;
        let clock = sim.clock();
        let start = clock.now();
        let mut kernel = Kernel::with_options(sim, options);
        let seen = watch.over(&mut kernel);
        // An explored run takes ready tasks in any order, and an interrupt from outside arrives
        // between a poll and its lines.
        let is_plain = remark.is_none() && matches!(watch, Watch::Nothing | Watch::Note);
        let truth = is_plain.then(Truth::default);
        let text = Text { remark, ..Text::default() };
        kernel.trace_to(text.clone());
        panic_beyond(limit.unwrap_or(LIMIT), &mut kernel);
        truth.into_iter().for_each(|truth| kernel.observe(truth));
        let failed = |why| Failure { why, panic: None, trace: text.take() };
        let caught = |panic: Box<dyn Any + Send>| {
            let why = format!("main panicked: {}", panic_message(&*panic));
            Failure { why, panic: Some(panic), trace: text.take() }
        };
        let ended = catch_unwind(AssertUnwindSafe(|| kernel.run_from(main, site)));
        let output = ended.map_err(caught)?.map_err(|error| failed(error.to_string()))?;
        let took = clock.now().since(start);
        let ended = catch_unwind(AssertUnwindSafe(|| kernel.shutdown())).map_err(caught)?;
        ended.map_err(|error| failed(format!("in the shutdown, {error}")))?;
        let counters = kernel.counters();
        drop(kernel);
        let left = what_is_left(&counters);
        if !left.is_empty() {
            return Err(failed(format!("the program leaves {left}")));
        }
        let trace = text.take();
        match judge(&trace, panics_allowed) {
            Ok(panics) => {
                let ran = Ran { output, took, trace, counters };
                Ok(Lived { ran, seen: seen.take(), panics })
            }
            Err(why) => Err(Failure { why, panic: None, trace }),
        }
    }
}

/// Ends a run that has more events than this.
fn panic_beyond(limit: u64, kernel: &mut Kernel<Sim>) {
    let mut events = 0;
    kernel.observe(move |_: &kernel::trace::Line<'_>| {
        events += 1;
        // Only once, because futures that are dropped on the way out may still cause events.
        assert!(events != limit + 1, "the program does not end: more than {limit} events");
    });
}

/// A trace in memory, for [`Kernel::trace_to`]. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Text {
    bytes: Rc<RefCell<Vec<u8>>>,
    /// The second line.
    remark: Option<String>,
}

impl Text {
    /// Takes what was written.
    ///
    /// # Panics
    ///
    /// If the bytes are not text. A trace always is.
    #[must_use]
    pub fn take(&self) -> String {
        let text = String::from_utf8(self.bytes.take()).expect("a trace is ASCII");
        match (text.split_once('\n'), &self.remark) {
            (Some((head, lines)), Some(remark)) => format!("{head}\n{remark}\n{lines}"),
            _ => text,
        }
    }
}

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A run that passed all checks.
struct Lived<T> {
    ran: Ran<T>,
    /// The traps of the run, if they were noted.
    seen: Vec<Trap>,
    /// Tasks that panicked.
    panics: usize,
}

/// A run that failed a check.
struct Failure {
    why: String,
    /// The panic of main, or of the kernel itself.
    panic: Option<Box<dyn Any + Send>>,
    trace: String,
}

impl Failure {
    /// Makes the test fail.
    #[track_caller]
    fn raise(self) -> ! {
        let lines: Vec<&str> = self.trace.lines().collect();
        let left_out = lines.len().saturating_sub(SHOWN);
        let mut trace = lines[left_out..].join("\n");
        if left_out > 0 {
            trace = format!("# {left_out} lines are left out\n{trace}");
        }
        match self.panic {
            Some(panic) => {
                eprintln!("{trace}");
                resume_unwind(panic)
            }
            None => panic!("{}\n{trace}", self.why),
        }
    }
}

/// Describes what a kernel still holds after its shutdown. Empty if it holds nothing.
fn what_is_left(counters: &Counters) -> String {
    let held = [
        ("tasks", counters.tasks),
        ("tickets", counters.tickets),
        ("scopes", counters.scopes),
        ("timers", counters.timers),
        ("registered", counters.registered),
        ("handles", counters.handles),
        ("jobs", counters.jobs),
        ("pending", counters.pending),
        ("deadlines", counters.deadlines),
    ];
    let left = held.iter().filter(|(_, count)| *count > 0);
    left.map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(" ")
}

/// Checks the trace. Returns the number of tasks that panicked.
fn judge(text: &str, panics_allowed: bool) -> Result<usize, String> {
    let lines = trace::trace(text).map_err(|error| format!("the trace: {error}"))?;
    let mut checker = Checker::default();
    text.lines().filter(|line| line.starts_with('#')).for_each(|line| checker.remark(line));
    lines.iter().for_each(|line| checker.line(line));
    checker.end().map_err(|violations| {
        let violations: Vec<String> = violations.iter().map(ToString::to_string).collect();
        format!("the trace breaks promises:\n{}", violations.join("\n"))
    })?;
    let panics: Vec<_> = lines.iter().filter(|line| line.verb == "panic").collect();
    let is_joined = |task: u64| {
        lines.iter().any(|line| line.verb == "join" && line.word(0).parse() == Ok(task))
    };
    let unseen = panics.iter().find(|panic| !panics_allowed && !is_joined(panic.task));
    match unseen {
        None => Ok(panics.len()),
        Some(panic) => Err(format!(
            "task {} {} panicked, and no join returned the panic: {}\n\
             (join the task; a test that expects this panic calls `panics_allowed`)",
            panic.task,
            panic.name(),
            panic.detail(),
        )),
    }
}
