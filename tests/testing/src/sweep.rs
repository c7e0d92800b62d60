//! The sweep: interrupts a program at each of its traps, once by a cancellation and once by a
//! timeout.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::rc::Rc;

use kernel::{Injected, Kernel, Options, Sim};
use traps::Site;
use traps::internal::panic_message;

use super::{Failure, Ran, Setup};

/// A trap of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trap {
    /// The number of the trap, from 1 in the order of dispatch.
    pub number: u64,
    /// The number of the task that makes it.
    pub task: u64,
    /// The name of that task.
    pub name: String,
    /// The trap, in the words of the log.
    pub op: String,
    /// The call site, `file:line`.
    pub site: String,
}

impl Trap {
    fn of(trap: &kernel::TrapSeen<'_>) -> Trap {
        Trap {
            number: trap.number,
            task: trap.task,
            name: trap.name.to_owned(),
            op: trap.op.to_string(),
            site: format!("{}:{}", trap.site.file(), trap.site.line()),
        }
    }
}

/// `trap 3, sleep 1s until=1.000000 of task 3 child at examples/hello.rs:12`
impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trap { number, task, name, op, site } = self;
        write!(f, "trap {number}, {op} of task {task} {name} at {site}")
    }
}

/// The action of a run at its traps.
#[derive(Clone, Copy, Default)]
pub(crate) enum Watch {
    #[default]
    Nothing,
    /// It notes each.
    Note,
    /// Notes the trap with this number, and interrupts the task that makes it.
    Hit(Injected, u64),
}

impl Watch {
    /// Sets the hook of a kernel. Returns the list in which it will note the traps.
    pub(crate) fn over(self, kernel: &mut Kernel<Sim>) -> Rc<RefCell<Vec<Trap>>> {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let note = seen.clone();
        match self {
            Watch::Nothing => {}
            Watch::Note => kernel.before_each_trap(move |trap| {
                note.borrow_mut().push(Trap::of(trap));
                None
            }),
            Watch::Hit(what, number) => {
                kernel.before_each_trap(move |trap| {
                    let is_it = trap.number == number;
                    is_it.then(|| note.borrow_mut().push(Trap::of(trap)));
                    is_it.then_some(what)
                });
            }
        }
        seen
    }
}

/// A sweep over a program; [`Sweep::run`] or [`Sweep::check`] makes it.
///
/// `program` makes a machine and a main future for each run, always the same: it must not depend on
/// anything except the virtual clock.
///
/// The program is run once without an interrupt, and its traps are numbered in the order in which
/// the kernel answers or parks them. Then, for each trap, the program is run again up to that trap,
/// and just before the trap is dispatched, the task that makes it
///
/// - is **cancelled**, or
/// - **times out**: a deadline around the whole task passes. Nothing happens to tasks that it
///   spawned, as with any timeout.
///
/// A trap that blocks ends with the interrupt. If the trap answers, the interrupt is pending until
/// the next trap that blocks. Then the program continues. Each run must end, must not have more
/// panics than the plain run, must leave nothing behind and must keep the promises of the log, as
/// in [`Setup::run`]. [`Sweep::check`] can check more.
///
/// Costs two runs for each trap, so the time grows with the square of the length of the program.
///
/// ```
/// use std::time::Duration;
/// use kernel::Sim;
/// use traps::{sleep, spawn};
///
/// let swept = testing::sweep(|| {
///     let main = async {
///         let mut child = spawn("child", sleep(Duration::from_secs(1))).await;
///         child.join().await.is_ok()
///     };
///     (Sim::new(), main)
/// })
/// .run();
/// assert!(swept.plain.output);
/// assert_eq!((swept.traps, swept.runs), (3, 6)); // spawn, join, sleep
/// ```
#[must_use = "a sweep is made by `run` or `check`"]
pub fn sweep<P, F>(program: P) -> Sweep<P>
where
    P: FnMut() -> (Sim, F),
    F: Future,
{
    let (options, only) = (Options::new(), Vec::new());
    Sweep { program, options, limit: None, panics_allowed: false, only, stride: 1 }
}

/// A sweep to run, made by [`sweep`](fn@sweep).
#[derive(Debug)]
#[must_use = "a sweep is made by `run` or `check`"]
pub struct Sweep<P> {
    program: P,
    options: Options,
    limit: Option<u64>,
    panics_allowed: bool,
    only: Vec<String>,
    stride: u64,
}

/// The result of a sweep.
#[derive(Debug)]
#[non_exhaustive]
pub struct Swept<T> {
    /// The run without an interrupt.
    pub plain: Ran<T>,
    /// The traps of the run, including those of the shutdown.
    pub traps: u64,
    /// The runs with one.
    pub runs: u64,
}

/// One interrupt of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Injection {
    /// The kind of the interrupt.
    pub what: Injected,
    /// The trap that is about to be dispatched. Its task is interrupted.
    pub trap: Trap,
}

/// `a timeout before trap 3, …`
impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            Injected::Cancellation => "a cancellation",
            Injected::Timeout => "a timeout",
        };
        write!(f, "{what} before {}", self.trap)
    }
}

impl<P, F> Sweep<P>
where
    P: FnMut() -> (Sim, F),
    F: Future,
{
    /// Uses these options in every run.
    pub fn options(mut self, options: Options) -> Sweep<P> {
        self.options = options;
        self
    }

    /// Interrupts only tasks with one of these names; main's is `main`.
    pub fn only(mut self, names: &[&str]) -> Sweep<P> {
        self.only = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Interrupts only at every `stride`-th trap, for a program with many traps; 0 becomes 1.
    pub fn stride(mut self, stride: u64) -> Sweep<P> {
        self.stride = stride.max(1);
        self
    }

    /// Sets the number of events above which a run counts as endless. The default is ten thousand
    /// plus twenty times the number of the plain run.
    pub fn limit(mut self, events: u64) -> Sweep<P> {
        self.limit = Some(events);
        self
    }

    /// Lets tasks of the plain run panic although no join returns the panic; see
    /// [`Setup::panics_allowed`].
    pub fn panics_allowed(mut self) -> Sweep<P> {
        self.panics_allowed = true;
        self
    }

    /// Makes the sweep.
    ///
    /// # Panics
    ///
    /// If the plain run fails, as in [`Setup::run`], or if any other run fails. The message names
    /// each interrupt that led to a failure and has the trace of the first.
    #[track_caller]
    pub fn run(self) -> Swept<F::Output> {
        self.swept(|_, _| (), Location::caller())
    }

    /// Runs the sweep, and calls `check` with the result of each interrupted run.
    ///
    /// # Panics
    ///
    /// As for [`Sweep::run`]; a panic of `check` is a failure of that run.
    #[track_caller]
    pub fn check(self, check: impl FnMut(&Injection, Ran<F::Output>)) -> Swept<F::Output> {
        self.swept(check, Location::caller())
    }

    #[track_caller]
    fn swept(
        mut self,
        mut check: impl FnMut(&Injection, Ran<F::Output>),
        site: Site,
    ) -> Swept<F::Output> {
        let (sim, main) = (self.program)();
        let plain = match self.setup(sim).live(Watch::Note, main, site) {
            Ok(lived) => lived,
            Err(failure) => failure.raise(),
        };
        self.limit.get_or_insert(10_000 + 20 * plain.ran.trace.lines().count() as u64);
        let traps = plain.seen.len() as u64;
        let wanted = |trap: &Trap| self.only.is_empty() || self.only.contains(&trap.name);
        let stride = usize::try_from(self.stride).unwrap_or(usize::MAX);
        let chosen: Vec<Trap> = plain.seen.into_iter().filter(wanted).step_by(stride).collect();
        let (mut runs, mut failed, mut first) = (0, Vec::new(), None);
        for trap in chosen {
            for what in [Injected::Cancellation, Injected::Timeout] {
                runs += 1;
                let injection = Injection { what, trap: trap.clone() };
                if let Err(failure) = self.one(&injection, plain.panics, &mut check, site) {
                    failed.push(format!("- {injection}: {}", failure.why));
                    first.get_or_insert(failure.trace);
                }
            }
        }
        if let Some(trace) = first {
            let head = format!("{} of {runs} interrupted runs failed\n", failed.len());
            let why = head + &failed.join("\n") + "\nthe trace of the first:";
            Failure { why, panic: None, trace }.raise();
        }
        Swept { plain: plain.ran, traps, runs }
    }

    /// Runs the program once with an interrupt.
    fn one(
        &mut self,
        injection: &Injection,
        panics: usize,
        check: &mut impl FnMut(&Injection, Ran<F::Output>),
        site: Site,
    ) -> Result<(), Failure> {
        let watch = Watch::Hit(injection.what, injection.trap.number);
        let (sim, main) = (self.program)();
        // An interrupt may end the join of a task that panics in the plain run, too.
        let lived = self.setup(sim).panics_allowed().live(watch, main, site)?;
        let trace = lived.ran.trace.clone();
        let why = if lived.seen.first() != Some(&injection.trap) {
            let now = lived.seen.first().map_or("not made".to_owned(), ToString::to_string);
            format!("rule: a program is the same in each run, but this trap is now {now}")
        } else if lived.panics > panics {
            "a task panicked".to_owned()
        } else {
            match catch_unwind(AssertUnwindSafe(|| check(injection, lived.ran))) {
                Ok(()) => return Ok(()),
                Err(panic) => format!("the check failed: {}", panic_message(&*panic)),
            }
        };
        Err(Failure { why, panic: None, trace })
    }

    fn setup(&self, sim: Sim) -> Setup {
        let Sweep { options, limit, panics_allowed, .. } = self;
        let (options, limit, panics_allowed) = (options.clone(), *limit, *panics_allowed);
        Setup { sim, options, limit, panics_allowed, remark: None }
    }
}
