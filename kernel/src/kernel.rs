//! The kernel as its owner uses it: build, run, shut down, observe.

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

use crate::hook::Hook;
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

use crate::timers::Timers;
use crate::trace;
use crate::turn::{Running, Skipped};
use crate::view::Counters;
use crate::watchdog::Watchdog;

/// A single-threaded kernel over a machine: [`Real`] or [`Sim`](crate::Sim).
///
/// It belongs to the thread that made it. Tasks that are left when main has ended stay parked and
/// go on in the next run.
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
    pub(crate) hook: Hook,
    pub(crate) longrun: Longrun,
    pub(crate) watchdog: Watchdog,
    pub(crate) skipped: Skipped,
    /// Events that are counted as they happen; [`Kernel::counters`] adds the rest.
    pub(crate) counts: Counters,
    /// The last scan of the deadline table.
    pub(crate) scanned: traps::Time,
    /// A time at which a wait of the machine has to end although no timer is due.
    pub(crate) bound: Option<traps::Time>,
    /// The number of waits that something outside the kernel will end.
    pub(crate) external: usize,
    /// The task that runs now, or has ended in this run.
    pub(crate) running: Option<u32>,
    /// When it got the CPU, as far as the clock was read.
    pub(crate) running_since: traps::Time,
    /// Whether a log, a sweep or a watchdog needs to see each run.
    pub(crate) is_watched: bool,
    /// Whether the future of a task is being polled: a panic belongs to the task then.
    pub(crate) is_polling: bool,
    /// Counters that number the interrupt sources that fired, the sleeps, and the scheduling
    /// queues.
    pub(crate) fires: u64,
    pub(crate) sleeps: u64,
    pub(crate) queues: u64,
    /// Waits that guards have ended in this turn: descriptor, direction, task and scope.
    pub(crate) guarded: Vec<(u32, Direction, u32, u64)>,
    /// Names of outside waits, in the order of their first use.
    pub(crate) outside_names: Vec<&'static str>,
    pub(crate) main_ended: bool,
    /// The panic of main, until the run ends.
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
            hook: Hook::default(),
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

    /// Gives `activation` every event from now on. In a build without the feature `trace` it gets
    /// none.
    pub fn observe(&mut self, activation: impl Activation + 'static) {
        self.log.add(Box::new(activation));
        self.look();
    }

    /// Writes the stable trace to `out`. Flushes it when the kernel goes to sleep, at a `panic` and
    /// at the `halt`. In a build without the feature `trace` it writes only the head.
    ///
    /// The trace is written inside the kernel's loop. An `out` that stalls, such as a pipe that is
    /// not read, stalls the kernel. Lines that `out` refuses are dropped without an error.
    pub fn trace_to(&mut self, mut out: impl io::Write + 'static) {
        let head = trace::header(self.machine.clock_name(), self.machine.seed());
        let _ = writeln!(out, "{head}");
        self.observe(Writer::new(out));
    }

    /// Adds `ran=`, `waited=` and `late=` to the lines of the trace. The trace then differs from
    /// run to run.
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
    /// If a shutdown begins during the run ([`Options::shutdown_on`]), main continues. It can end
    /// by itself when it sees [`traps::shutdown::begun`]; otherwise it is cancelled when the drain
    /// is over. After that the kernel cannot run again; only [`Kernel::shutdown`] remains.
    ///
    /// # Errors
    ///
    /// [`Error`]: the machine failed, no task can ever run again, the kernel was shut down, or a
    /// shutdown that began during the run had to drop main.
    ///
    /// # Panics
    ///
    /// If main panicked, with its panic, after a shutdown. If a kernel is already running on this
    /// thread.
    #[track_caller]
    pub fn run<F: Future>(&mut self, main: F) -> Result<F::Output, Error> {
        self.run_from(main, Location::caller())
    }

    /// [`Kernel::run`], for a wrapper that passes the place of its caller in the source.
    ///
    /// # Errors
    ///
    /// As [`Kernel::run`].
    ///
    /// # Panics
    ///
    /// As [`Kernel::run`].
    pub fn run_from<F: Future>(&mut self, main: F, site: Site) -> Result<F::Output, Error> {
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

    /// Ends the kernel in phases. Each phase has a line in the log:
    ///
    /// - *close*: [`traps::shutdown::has_begun`] is true from now on, and the tasks that wait for
    ///   it are woken. A signal of [`Options::shutdown_on`] does this during a run.
    /// - *drain*: waits until every [`traps::shutdown::hold`] is dropped, at most
    ///   [`Options::drain`]. Another such signal ends it.
    /// - *cancel*: cancels the remaining tasks, newest first.
    /// - *cleanup*: waits until these tasks have ended, and those that they spawn, which are
    ///   cancelled too; at most [`Options::grace`]. Then drops the futures that are left, newest
    ///   first.
    /// - *halt*: waits for jobs on threads, abandoned ones too, for the rest of the grace period.
    ///   Then a line names those that still run. Scripted jobs of a simulated machine are not
    ///   waited for.
    ///
    /// Together the phases take no longer than the drain and one grace period. If a phase fails,
    /// the next ones still take place. A shutdown that finds no task to end has only the line of
    /// the halt. The kernel cannot run again.
    ///
    /// # Errors
    ///
    /// [`Error::Machine`]. On a simulated machine also [`Error::Hang`], if a drain or a grace
    /// period has no limit and nothing can happen any more. The later phases still take place.
    ///
    /// # Panics
    ///
    /// If a kernel is running on this thread, for example when a task calls this.
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
        // Threads that wait for an unhandled message learn here that it never will be handled.
        self.drop_messages();
        ended
    }

    /// Closes the wake queue. Its messages are foreign objects and are dropped one by one, because
    /// two panics at once would abort the process.
    fn drop_messages(&mut self) {
        self.inbox.queue.close().into_iter().for_each(drop_quietly);
    }

    /// Drops the remaining tasks, with a line for each.
    fn let_go(&mut self) {
        // The gate is in use in a task of another kernel. Then that kernel passes the posts on.
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

/// Drops the remaining tasks, newest first, with a line for each, and abandons jobs on threads.
impl<M: Machine> Drop for Kernel<M> {
    fn drop(&mut self) {
        // Runs outside of any task, because a task of another kernel may drop this kernel.
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
    // Runs after a failure too: the remaining tasks are ended, and the log says so.
    let ended = kernel.shutdown();
    let output = output?;
    ended?;
    Ok(output)
}

/// Main's future as the loop polls it.
pub(crate) type MainPoll<'a> = &'a mut dyn FnMut(&mut Context<'_>) -> Poll<()>;
