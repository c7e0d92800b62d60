//! The sweep: a program is interrupted at each of its traps, once by a cancellation and once by a
//! timeout.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::rc::Rc;

use kernel::{Injected, Kernel, Options, Sim};
use traps::Site;
use traps::threads::panic_message;

use super::{Failure, Ran, Setup};

/// A trap of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trap {
    /// From 1, in the order of their dispatch.
    pub number: u64,
    /// The number of the task that makes it.
    pub task: u64,
    /// The name of that task.
    pub name: String,
    /// What it asks for, in the words of the log.
    pub op: String,
    /// Where it was made, `file:line`.
    pub site: String,
}

impl Trap {
    fn of(trap: &kernel::Trap<'_>) -> Trap {
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

/// What a run does at its traps.
#[derive(Clone, Copy, Default)]
pub(crate) enum Watch {
    #[default]
    Nothing,
    /// It notes each.
    Note,
    /// It notes the trap of this number, and interrupts the task that makes it.
    Hit(Injected, u64),
}

impl Watch {
    /// Sets the hook of a kernel. Gives the traps that it will note.
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
/// `program` makes a machine and a main future, anew for each run, and always the same: it may
/// not depend on anything but the virtual clock.
///
/// The program is run once as it is, and its traps are numbered in the order in which the kernel
/// answers or parks them. Then, for each trap, it is run anew up to there, and just before the
/// trap is dispatched the task that makes it
///
/// - is **cancelled**, or
/// - **times out**: a deadline around all that it does passes. To tasks that it spawned nothing
///   happens, as with any timeout.
///
/// A trap that blocks ends with the interrupt; from one that answers it is pending until the next
/// that blocks. All goes on as the program has it. Each run must end, without a panic that the
/// program does not have anyway, leave nothing behind and keep the promises of the log, as in
/// [`Setup::run`]; what else must be true of it, [`Sweep::check`] can say.
///
/// Costs as many runs as there are traps, twice: of the order of the square of the program.
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
    Sweep { program, options: Options::new(), limit: None, only: Vec::new(), stride: 1 }
}

/// What a sweep is to do; made by [`sweep`](fn@sweep).
#[derive(Debug)]
#[must_use = "a sweep is made by `run` or `check`"]
pub struct Sweep<P> {
    program: P,
    options: Options,
    limit: Option<u64>,
    only: Vec<String>,
    stride: u64,
}

/// What a sweep has done.
#[derive(Debug)]
#[non_exhaustive]
pub struct Swept<T> {
    /// The run without an interrupt.
    pub plain: Ran<T>,
    /// Its traps, those of the shutdown included.
    pub traps: u64,
    /// The runs with one.
    pub runs: u64,
}

/// One interrupt of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Injection {
    /// Which of the two.
    pub what: Injected,
    /// Just before which trap, and so in which task.
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
    /// With these options in every run.
    pub fn options(mut self, options: Options) -> Sweep<P> {
        self.options = options;
        self
    }

    /// Interrupts only tasks with one of these names; main's is `main`.
    pub fn only(mut self, names: &[&str]) -> Sweep<P> {
        self.only = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Interrupts only at every `stride`-th trap, for a program of many; 0 becomes 1.
    pub fn stride(mut self, stride: u64) -> Sweep<P> {
        self.stride = stride.max(1);
        self
    }

    /// A run with more than `events` events is taken to be endless. Ten thousand, and twenty times
    /// what the plain run has.
    pub fn limit(mut self, events: u64) -> Sweep<P> {
        self.limit = Some(events);
        self
    }

    /// Makes the sweep.
    ///
    /// # Panics
    ///
    /// If the plain run fails as [`Setup::run`] may, or if any other does: the message names each
    /// such interrupt and has the trace of the first.
    #[track_caller]
    pub fn run(self) -> Swept<F::Output> {
        self.swept(|_, _| (), Location::caller())
    }

    /// Makes the sweep, and has `check` look at what each interrupted run came to.
    ///
    /// # Panics
    ///
    /// As [`Sweep::run`] does; a panic of `check` is a failure of that run.
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

    /// One run with an interrupt.
    fn one(
        &mut self,
        injection: &Injection,
        panics: usize,
        check: &mut impl FnMut(&Injection, Ran<F::Output>),
        site: Site,
    ) -> Result<(), Failure> {
        let watch = Watch::Hit(injection.what, injection.trap.number);
        let (sim, main) = (self.program)();
        let lived = self.setup(sim).live(watch, main, site)?;
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
        Setup { sim, options: self.options.clone(), limit: self.limit, remark: None }
    }
}
