//! The kernel as its owner sees it: build, run, shut down, observe.

use std::fmt;
use std::io;
use std::panic::{Location, resume_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use traps::deadline::Due;
use traps::gate::{Gate, Shared};
use traps::protocol::{Direction, Site};
use traps::threads::drop_quietly;

use crate::jobs::Jobs;
use crate::log::{Activation, Log, Writer};
use crate::longrun::Longrun;
use crate::machine::{Arrivals, Machine, Real};
use crate::options::{Error, Options};
use crate::outside::{Inbox, SpareWaker, WakeQueue, Wakeup};
use crate::ready::ReadyQueue;
use crate::registrations::Registrations;
use crate::scopes::Scopes;
use crate::shutdown::Ending;
use crate::signals::Signals;
use crate::task::Tasks;
use crate::testing::inject::Inject;
use crate::timers::Timers;
use crate::trace;
use crate::turn::{Running, Skipped};
use crate::view::Counters;
use crate::watchdog::Watchdog;

/// A single-threaded kernel over a machine: [`Real`] or [`Sim`](crate::Sim).
///
/// It belongs to the thread that made it. Tasks that main leaves behind stay parked and go on in
/// the next run.
pub struct Kernel<M: Machine> {
    pub(crate) machine: M,
    pub(crate) options: Options,
    pub(crate) gate: &'static Gate,
    pub(crate) shared: Rc<Shared>,
    pub(crate) log: Log,
    pub(crate) tasks: Tasks,
    pub(crate) scopes: Scopes,
    pub(crate) timers: Timers,
    pub(crate) registrations: Registrations,
    pub(crate) ready: ReadyQueue,
    pub(crate) inbox: Inbox,
    pub(crate) spare: SpareWaker,
    pub(crate) wakeup: Wakeup,
    pub(crate) jobs: Jobs,
    pub(crate) signals: Signals,
    pub(crate) ending: Ending,
    pub(crate) inject: Inject,
    pub(crate) longrun: Longrun,
    pub(crate) watchdog: Watchdog,
    pub(crate) skipped: Skipped,
    /// What is counted as it happens; [`Kernel::counters`] adds the rest.
    pub(crate) counts: Counters,
    /// The last scan of the deadline table.
    pub(crate) scanned: traps::Time,
    /// A point at which a wait ends also without a timer.
    pub(crate) bound: Option<traps::Time>,
    /// Waits that something outside the kernel will end.
    pub(crate) external: usize,
    /// The task that runs now, or has ended in this run.
    pub(crate) running: Option<u32>,
    /// When it got the CPU, as far as the clock was read.
    pub(crate) running_since: traps::Time,
    /// A log, a sweep or a watchdog wants to know of each run.
    pub(crate) is_watched: bool,
    /// Its future is being polled: a panic is the task's.
    pub(crate) is_polling: bool,
    /// Sources of interrupts that fired, sleeps, and scheduling queues, counted to number them.
    pub(crate) fires: u64,
    pub(crate) sleeps: u64,
    pub(crate) queues: u64,
    /// What guards have ended in this turn: descriptor, direction, task and scope.
    pub(crate) guarded: Vec<(u32, Direction, u32, u64)>,
    /// Names of outside waits, in the order of their first use.
    pub(crate) outside_names: Vec<&'static str>,
    pub(crate) main_ended: bool,
    /// What main panicked with, kept until the run ends.
    pub(crate) main_panic: Option<Box<dyn std::any::Any + Send>>,
    // Buffers that are used again, so that no turn allocates.
    pub(crate) arrivals: Arrivals,
    pub(crate) due: Vec<Due>,
}

impl<M: Machine> Kernel<M> {
    /// A kernel with the default options.
    #[must_use]
    pub fn new(machine: M) -> Kernel<M> {
        Kernel::with_options(machine, Options::default())
    }

    /// A kernel with other options.
    #[must_use]
    pub fn with_options(machine: M, options: Options) -> Kernel<M> {
        let options = options.in_bounds(machine.tick());
        let gate = Gate::of_this_thread();
        let epoch = gate.open();
        let inbox = Inbox { epoch, queue: Arc::new(WakeQueue::new(machine.bell())) };
        let clock = machine.thread_clock();
        let shared = Shared::new(epoch, Box::new(clock), Arc::new(inbox.clone()));
        Kernel {
            gate,
            shared: Rc::new(shared),
            log: Log::default(),
            tasks: Tasks::new(),
            scopes: Scopes::default(),
            timers: Timers::default(),
            registrations: Registrations::default(),
            ready: ReadyQueue::default(),
            spare: SpareWaker::new(&inbox),
            jobs: Jobs::new(&options, machine.thread_clock(), &inbox.queue),
            inbox,
            wakeup: Wakeup::default(),
            signals: Signals::default(),
            ending: Ending::default(),
            inject: Inject::default(),
            longrun: Longrun::new(options.longrun),
            watchdog: Watchdog::default(),
            skipped: Skipped::default(),
            counts: Counters::default(),
            scanned: traps::Time::ZERO,
            bound: None,
            external: 0,
            running: None,
            running_since: traps::Time::ZERO,
            is_watched: false,
            is_polling: false,
            fires: 0,
            sleeps: 0,
            queues: 0,
            guarded: Vec::new(),
            outside_names: Vec::new(),
            main_ended: false,
            main_panic: None,
            arrivals: Arrivals::default(),
            due: Vec::new(),
            machine,
            options,
        }
    }

    /// Lets `activation` see every event from now on. In a build without the feature `trace` it
    /// sees none.
    pub fn observe(&mut self, activation: impl Activation + 'static) {
        self.log.add(Box::new(activation));
        self.look();
    }

    /// Writes the stable trace to `out`, and flushes it when the kernel goes to sleep, at a
    /// `panic` and at the `halt`. In a build without the feature `trace` it writes the head alone.
    ///
    /// It writes inside the kernel's loop, so an `out` that stalls, such as a pipe that nobody
    /// reads, stalls the kernel. It drops what `out` refuses, and does not report it.
    pub fn trace_to(&mut self, mut out: impl io::Write + 'static) {
        let head = trace::header(self.machine.clock_name(), self.machine.seed());
        let _ = writeln!(out, "{head}");
        self.observe(Writer::new(out));
    }

    /// Adds `ran=`, `waited=` and `late=` to the lines of the trace, which then differs from run
    /// to run.
    pub fn time_the_trace(&mut self) {
        self.log.timed = true;
    }

    /// The machine below.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Runs `main` as a task and returns its output as soon as it has ended. Other tasks stay
    /// parked and go on in the next run.
    ///
    /// If a shutdown begins meanwhile ([`Options::shutdown_on`]), main runs on. It ends by itself,
    /// as [`traps::shutdown::begun`] tells it to, or it is cancelled when the drain is over. There
    /// is no next run then, only [`Kernel::shutdown`].
    ///
    /// # Errors
    ///
    /// [`Error`]: the machine failed, everything hangs, the kernel was shut down, or a shutdown
    /// that began meanwhile had to drop main.
    ///
    /// # Panics
    ///
    /// With main's panic, after a shutdown; and if a kernel runs on this thread already.
    #[track_caller]
    pub fn run<F: Future>(&mut self, main: F) -> Result<F::Output, Error> {
        self.run_from(main, Location::caller())
    }

    /// [`Kernel::run`], for a wrapper that knows its own caller's place in the source.
    pub(crate) fn run_from<F: Future>(&mut self, main: F, site: Site) -> Result<F::Output, Error> {
        if self.is_closing() {
            return Err(Error::Shut);
        }
        let mut output = None;
        let ended = {
            let mut main = pin!(main);
            let mut poll = |cx: &mut Context<'_>| {
                let polled = main.as_mut().poll(cx);
                polled.map(|value| output = Some(value))
            };
            self.run_main(&mut poll, site)
        };
        if let Some(panic) = self.main_panic.take() {
            let _ = self.shutdown_because("main_panicked");
            resume_unwind(panic);
        }
        ended?;
        Ok(output.expect("a run ends when main has ended"))
    }

    /// Ends the kernel, phase by phase, each with its line:
    ///
    /// - *close*: [`traps::shutdown::has_begun`] is true from now on, and who waits for that is
    ///   woken. A signal of [`Options::shutdown_on`] does this in the midst of a run.
    /// - *drain*: until every [`traps::shutdown::hold`] is dropped, at most [`Options::drain`].
    ///   Another such signal ends it.
    /// - *cancel*: all tasks that are left are cancelled, newest first.
    /// - *cleanup*: until they have ended, and those that they spawned, which are cancelled too;
    ///   at most [`Options::grace`]. Then the futures that are left are dropped, newest first.
    /// - *halt*: jobs on threads, abandoned ones too, have what remains of that grace; jobs that a
    ///   simulated machine plays have none. Then a line names those that still run.
    ///
    /// All together take no longer than the drain and one grace, and a step that fails does not
    /// skip the next. A shutdown that finds nothing to end has only the line of the halt. The
    /// kernel does not run again.
    ///
    /// # Errors
    ///
    /// [`Error::Machine`]. On a simulated machine also [`Error::Hang`], if a drain or a grace has
    /// no limit and nothing can happen any more. The later phases are gone through all the same.
    ///
    /// # Panics
    ///
    /// If a kernel runs on this thread, as in its task.
    pub fn shutdown(&mut self) -> Result<(), Error> {
        self.shutdown_because("shutdown")
    }

    fn shutdown_because(&mut self, reason: &str) -> Result<(), Error> {
        if self.has_halted() {
            return Ok(());
        }
        let ended = {
            let _running = Running::enter(self);
            self.shut_down(reason)
        };
        // Whoever waits for what was not heeded hears that it never will be.
        self.drop_messages();
        ended
    }

    /// Closes the wake queue. What is in it is foreign, each message for itself: two panics at once
    /// would end the process.
    fn drop_messages(&mut self) {
        self.inbox.queue.close().into_iter().for_each(drop_quietly);
    }

    /// Drops what is left, with a line for each task.
    fn let_go(&mut self) {
        // In a task of another kernel the gate is taken. Then that kernel passes the posts on.
        let running = self.gate.is_free().then(|| Running::enter(self));
        self.drop_tasks("its_kernel_is_dropped");
        self.drop_jobs();
        self.drop_messages();
        drop(running);
        self.gate.close().into_iter().for_each(drop_quietly);
    }
}

impl<M: Machine> fmt::Debug for Kernel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

/// Tasks that are left are dropped, newest first, with a line each. Jobs on threads are abandoned.
impl<M: Machine> Drop for Kernel<M> {
    fn drop(&mut self) {
        // In the name of no task: it may be dropped in one of another kernel.
        self.gate.aside(|| self.let_go());
    }
}

/// Runs `main` on the operating system with the default options, then shuts down.
///
/// ```no_run
/// use std::time::Duration;
///
/// async fn program() -> Result<(), traps::Interrupt> {
///     traps::sleep(Duration::from_secs(1)).await?;
///     println!("a second later");
///     Ok(())
/// }
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     // The kernel's error, and the program's own.
///     Ok(kernel::run(program())??)
/// }
/// ```
///
/// # Errors
///
/// [`Error`].
///
/// # Panics
///
/// As [`Kernel::run`] does.
#[track_caller]
pub fn run<F: Future>(main: F) -> Result<F::Output, Error> {
    let mut kernel = Kernel::new(Real::new().map_err(Error::Machine)?);
    let output = kernel.run(main);
    // Also after a failure: what is left is ended, and the log says so.
    let ended = kernel.shutdown();
    let output = output?;
    ended?;
    Ok(output)
}

/// Main's future as the loop polls it.
pub(crate) type MainPoll<'a> = &'a mut dyn FnMut(&mut Context<'_>) -> Poll<()>;
