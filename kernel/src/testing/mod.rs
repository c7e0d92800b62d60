//! Tests of programs on the virtual clock: no waiting, no flakes, nothing left unnoticed.
//!
//! [`run`] runs a main future on a [`Sim`], shuts down, and panics with the trace if anything is
//! wrong that no program may do: it hangs, it leaves something behind, or its trace breaks a
//! promise of the [log](crate::trace). What is right in particular is for the test to say:
//!
//! ```
//! use std::time::Duration;
//! use traps::{Kind, sleep, timeout_after};
//!
//! let second = Duration::from_secs(1);
//! let ran = kernel::testing::run(async {
//!     timeout_after(second, sleep(60 * second)).await
//! });
//! assert_eq!(ran.output.unwrap_err().kind(), Kind::TaskTimeout);
//! assert_eq!(ran.took, second); // by the kernel's clock; the test itself took no time
//! ```
//!
//! # The world of a test
//!
//! [`Setup`] takes a [`Sim`] and [`Options`]. The [`Sim`] is the world: a clock that jumps to
//! whatever is due next, and a script.
//!
//! - **The clock.** It moves only when every task waits. [`Sim::clock`] is a handle to it:
//!   `advance` lets time pass while a task holds the CPU, as a long computation does;
//!   [`Sim::late_by`] makes every deadline fire late, as a busy machine does; [`Sim::seed`] has
//!   what happens at one instant happen in any order.
//! - **Readiness.** `Io::new(Scripted(7))` waits like a socket; [`Sim::ready_at`] says when it
//!   looks ready. There are no bytes behind it.
//! - **Signals and threads.** [`Sim::signal_at`] sends a signal. After [`Sim::jobs_take`] a job of
//!   `run_in_thread` takes that long by the script; without it, it runs on a real thread and the
//!   clock stands still until it is back.
//! - **Streams.** `net::pipe::duplex` is a pair of ends in memory: give one to the protocol code,
//!   and be the peer at the other. `set_short_reads` makes it as mean as a network.
//!
//! ```
//! use std::time::Duration;
//! use kernel::{Sim, testing::Setup};
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
//! [`Ran::trace`] is the stable trace, the same bytes on every machine: keep it in a file and
//! compare it, and a change of the order of events is a diff that someone has to explain. (`at=`
//! names lines of the test's own source.) [`Ran::counters`] says what it cost: traps, turns, waits
//! on the machine.
//!
//! # Interrupted anywhere
//!
//! [`sweep`] runs a program once for each of its traps and interrupts it there, by a cancellation
//! and by a timeout: whatever a program does to be interrupted safely, this is its test.

mod sweep;

use std::any::Any;
use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

use traps::protocol::Site;
use traps::threads::panic_message;

use crate::inject::Inject;
use crate::kernel::Kernel;
use crate::machine::Sim;
use crate::options::Options;
use crate::trace::{self, Event};
use crate::view::Counters;

pub use sweep::{Injected, Injection, Sweep, Swept, Trap, sweep};

/// Events of a run that are enough to call it endless.
const LIMIT: u64 = 1_000_000;

/// Runs `main` on a new [`Sim`] with the default options; see [`Setup::run`].
///
/// # Panics
///
/// As [`Setup::run`] does.
#[track_caller]
pub fn run<F: Future>(main: F) -> Ran<F::Output> {
    Setup::new().run(main)
}

/// What a program came to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ran<T> {
    /// Main's output.
    pub output: T,
    /// By the kernel's clock, up to the end of main; the shutdown is not in it.
    pub took: Duration,
    /// The stable trace, head and shutdown included.
    pub trace: String,
    /// After the shutdown: what is held is zero, what is counted is what it cost.
    pub counters: Counters,
}

/// What a test chooses for its run. All of it has a default.
#[derive(Debug, Default)]
pub struct Setup {
    sim: Sim,
    options: Options,
    limit: Option<u64>,
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

    /// A run of more than `events` lines of the trace is an endless one. A million.
    #[must_use]
    pub fn limit(mut self, events: u64) -> Setup {
        self.limit = Some(events);
        self
    }

    /// Runs `main` on a kernel, shuts the kernel down, and sees to it that all is well.
    ///
    /// # Panics
    ///
    /// With main's panic, after printing the trace. With the trace in the message if the program
    /// hangs or does not end within the limit; if tasks, tickets, scopes, timers, registrations,
    /// handles, jobs or interrupts are left after the shutdown (a handle that lives on in main's
    /// output is); if the trace breaks a promise.
    #[track_caller]
    pub fn run<F: Future>(self, main: F) -> Ran<F::Output> {
        match self.live(Inject::default(), main, Location::caller()) {
            Ok(lived) => lived.ran,
            Err(broken) => broken.rise(),
        }
    }

    /// The whole life of a kernel.
    fn live<F: Future>(
        self,
        inject: Inject,
        main: F,
        site: Site,
    ) -> Result<Lived<F::Output>, Broken> {
        let Setup { sim, options, limit } = self;
        let (clock, text) = (sim.clock(), Transcript::default());
        let start = clock.now();
        let mut kernel = Kernel::with_options(sim, options);
        kernel.inject = inject;
        kernel.trace_to(text.clone());
        let limit = limit.unwrap_or(LIMIT);
        let mut left = limit;
        kernel.observe(move |_: &trace::Line<'_>| {
            if left == 0 {
                // Once: what is dropped on the way out may still say something.
                left = u64::MAX;
                resume_unwind(Box::new(Endless(limit)));
            }
            left -= 1;
        });
        let broken = |fault| Broken { fault, trace: text.read() };
        let said = |why| broken(Fault::Said(why));
        let panicked = |panic| broken(Fault::Panicked(panic));
        let ended = catch_unwind(AssertUnwindSafe(|| kernel.run_from(main, site)));
        let output = ended.map_err(panicked)?.map_err(|error| said(error.to_string()))?;
        let took = clock.now().since(start);
        let ended = catch_unwind(AssertUnwindSafe(|| kernel.shutdown()));
        let ended = ended.map_err(panicked)?;
        ended.map_err(|error| said(format!("in the shutdown, {error}")))?;
        let counters = kernel.counters();
        let seen = std::mem::take(&mut kernel.inject.seen);
        drop(kernel);
        let left = what_is_left(&counters);
        if !left.is_empty() {
            return Err(said(format!("the program leaves {left}")));
        }
        let trace = text.read();
        let panics = judge(&trace).map_err(said)?;
        Ok(Lived { ran: Ran { output, took, trace, counters }, seen, panics })
    }
}

/// A run that all is well with.
struct Lived<T> {
    ran: Ran<T>,
    /// The traps that were looked at.
    seen: Vec<Trap>,
    /// Tasks that panicked.
    panics: usize,
}

/// A run that something is wrong with.
struct Broken {
    fault: Fault,
    trace: String,
}

enum Fault {
    Said(String),
    /// By main, or by the kernel itself.
    Panicked(Box<dyn Any + Send>),
}

impl Broken {
    /// What went wrong, in words.
    fn why(&self) -> String {
        match &self.fault {
            Fault::Said(why) => why.clone(),
            Fault::Panicked(panic) => match panic.downcast_ref::<Endless>() {
                Some(endless) => endless.to_string(),
                None => format!("main panicked: {}", panic_message(&**panic)),
            },
        }
    }

    /// Makes the test fail.
    #[track_caller]
    fn rise(self) -> ! {
        match self.fault {
            Fault::Panicked(panic) if !panic.is::<Endless>() => {
                // What the panic says was printed when it rose.
                eprintln!("{}", excerpt(&self.trace));
                resume_unwind(panic)
            }
            _ => panic!("{}\n{}", self.why(), excerpt(&self.trace)),
        }
    }
}

/// The payload of the panic that ends an endless run.
struct Endless(u64);

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the program does not end: more than {} events", self.0)
    }
}

/// The trace of a run, kept.
#[derive(Clone, Default)]
struct Transcript(Rc<RefCell<Vec<u8>>>);

impl Transcript {
    fn read(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow()).into_owned()
    }
}

impl io::Write for Transcript {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a kernel that was shut down still holds, in words; empty if it is nothing.
fn what_is_left(counters: &Counters) -> String {
    let Counters { tasks, tickets, scopes, timers, deadlines, registered, .. } = *counters;
    let Counters { handles, jobs, pending, .. } = *counters;
    let held = [
        ("tasks", tasks),
        ("tickets", tickets),
        ("scopes", scopes),
        ("timers", timers),
        ("registered", registered),
        ("handles", handles),
        ("jobs", jobs),
        ("pending", pending),
        ("deadlines", deadlines),
    ];
    let left = held.iter().filter(|(_, count)| *count > 0);
    left.map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(" ")
}

/// Asks the oracle; gives the number of tasks that panicked.
fn judge(text: &str) -> Result<usize, String> {
    let lines = match trace::trace(text) {
        Ok(lines) => lines,
        Err((line, error)) => return Err(format!("line {line} of the trace: {error}")),
    };
    trace::check(&lines).map_err(|violations| {
        let mut why = "the trace breaks promises:".to_owned();
        violations.iter().for_each(|violation| _ = write!(why, "\n{violation}"));
        why
    })?;
    Ok(lines.iter().filter(|line| matches!(line.event, Event::Panic { .. })).count())
}

/// A trace as a message shows it: of a long one the two ends.
fn excerpt(trace: &str) -> String {
    const HEAD: usize = 100;
    const TAIL: usize = 400;
    let lines: Vec<&str> = trace.lines().collect();
    let Some(left_out) = lines.len().checked_sub(HEAD + TAIL).filter(|n| *n > 0) else {
        return trace.to_owned();
    };
    let (head, tail) = (&lines[..HEAD], &lines[HEAD + left_out..]);
    format!("{}\n# {left_out} lines are left out\n{}", head.join("\n"), tail.join("\n"))
}
