//! The kernel as its owner sees it: build, run, shut down, observe.

use std::fmt;
use std::io;
use std::panic::{Location, resume_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use traps::deadline_table::DeadlineTable;
use traps::gate::Gate;
use traps::protocol::{Birth, Filed, Site};
use traps::scope_table::ScopeTable;
use traps::threads::Outlook;

use crate::deadlines::Deadlines;
use crate::emit::drop_quietly;
use crate::inject::Inject;
use crate::jobs::Jobs;
use crate::log::{Activation, Log, Writer};
use crate::longrun::{Longrun, Skipped};
use crate::machine::{Arrivals, Machine, Real};
use crate::options::{Error, Options};
use crate::ready::ReadyQueue;
use crate::registrations::Registrations;
use crate::scopes::Scopes;
use crate::shutdown::Ending;
use crate::signals::Signals;
use crate::tasks::Tasks;
use crate::threads::{Deliver, Pool};
use crate::timers::{Due, TimeQueue};
use crate::trace;
use crate::waits::{Wait, Waits};
use crate::wake::WakeQueue;
use crate::waker::{Message, SpareWaker};
use crate::watchdog::Watchdog;
use crate::workers::Workers;

/// A single-threaded kernel over a machine: [`Real`] or [`Sim`](crate::Sim).
///
/// Belongs to the thread that made it. Tasks that main leaves behind stay parked and go on in the
/// next run.
pub struct Kernel<M: Machine> {
    pub(crate) machine: M,
    pub(crate) options: Options,
    pub(crate) gate: Rc<Gate>,
    pub(crate) epoch: u32,
    pub(crate) log: Log,
    pub(crate) tasks: Tasks,
    pub(crate) waits: Waits,
    pub(crate) scopes: Scopes,
    pub(crate) timers: TimeQueue,
    pub(crate) deadlines: Deadlines,
    pub(crate) registrations: Registrations,
    pub(crate) ready: ReadyQueue,
    pub(crate) wakes: Arc<WakeQueue<Message>>,
    pub(crate) deliver: Deliver,
    pub(crate) pool: Pool,
    pub(crate) workers: Workers,
    pub(crate) jobs: Jobs,
    pub(crate) signals: Signals,
    pub(crate) spare: SpareWaker,
    pub(crate) wakeup: Wakeup,
    pub(crate) scratch: Scratch,
    /// The task that runs gave way, and filed nothing else.
    pub(crate) gave_way: bool,
    pub(crate) counts: Counts,
    pub(crate) inject: Inject,
    pub(crate) ending: Ending,
    /// A point at which a wait ends also without a timer.
    pub(crate) bound: Option<traps::Time>,
    /// Foreign waits that something outside will wake.
    pub(crate) external: usize,
    /// The task that runs now, or has ended in this run.
    pub(crate) running: Option<u32>,
    /// When it began to run, as far as the clock was read: for a timed trace, and for who looks.
    pub(crate) running_since: traps::Time,
    pub(crate) longrun: Longrun,
    pub(crate) watchdog: Watchdog,
    pub(crate) skipped: Skipped,
    /// The last line before those of what was posted.
    pub(crate) before_posts: trace::Seq,
    /// Scheduling queues that have a number.
    pub(crate) queues: u64,
    pub(crate) main_ended: bool,
    /// What main panicked with, kept until the run ends.
    pub(crate) main_panic: Option<Box<dyn std::any::Any + Send>>,
}

/// The kernel's own task, number 1.
#[derive(Default)]
pub(crate) struct Wakeup {
    /// It ran once, and waits for the bell.
    pub(crate) parked: bool,
    pub(crate) seq: trace::Seq,
}

/// Buffers that are used again every turn, so that no turn allocates.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) inbox: Vec<Filed>,
    pub(crate) births: Vec<Birth>,
    pub(crate) arrivals: Arrivals,
    pub(crate) due: Vec<Due>,
    pub(crate) messages: Vec<Message>,
    /// Tickets to be completed when the task that runs has left the CPU.
    pub(crate) yielded: Vec<u32>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) polls: u64,
    pub(crate) registers: u64,
    pub(crate) unregisters: u64,
    pub(crate) traps: u64,
    /// Messages of other threads that were heeded, and how often there were any.
    pub(crate) wakes: u64,
    pub(crate) batches: u64,
    /// Outside wakes that came too late.
    pub(crate) stale: u64,
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
        let mut options = options.in_bounds();
        let tick = options.tick_over(machine.tick());
        options.tick = Some(tick);
        let gate = Gate::of_this_thread();
        let epoch = gate.open();
        let wakes = Arc::new(WakeQueue::new(machine.bell()));
        gate.set_outside(epoch, wakes.clone());
        let queue = wakes.clone();
        let table = DeadlineTable::new(tick, machine.coarse_clock());
        let clock = machine.thread_clock();
        let names = ScopeTable::new(epoch, table.clone(), Box::new(clock));
        let outlook = Arc::new(Outlook::new(options.threads, machine.thread_clock()));
        let deliver: Deliver = Arc::new(move |done| {
            queue.push(Message::Done(done));
        });
        Kernel {
            gate,
            epoch,
            log: Log::default(),
            tasks: Tasks::new(epoch),
            waits: Waits::new(epoch),
            scopes: Scopes::new(epoch, names),
            timers: TimeQueue::new(table),
            deadlines: Deadlines::default(),
            registrations: Registrations::default(),
            ready: ReadyQueue::default(),
            pool: Pool::new(options.idle, deliver.clone()),
            workers: Workers::new(options.threads, outlook),
            deliver,
            jobs: Jobs::default(),
            signals: Signals::default(),
            spare: SpareWaker::new(&wakes),
            wakes,
            wakeup: Wakeup::default(),
            scratch: Scratch::default(),
            gave_way: false,
            counts: Counts::default(),
            inject: Inject::default(),
            ending: Ending::default(),
            bound: None,
            external: 0,
            running: None,
            running_since: traps::Time::ZERO,
            longrun: Longrun::new(options.longrun),
            watchdog: Watchdog::default(),
            skipped: Skipped::NONE,
            before_posts: 0,
            queues: 0,
            main_ended: false,
            main_panic: None,
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

    /// Writes the stable trace to `out`, head and all (in a build without the feature `trace` the
    /// head alone); flushes it when the kernel goes to sleep, at
    /// a `panic` and at the `halt`. It is written inside the loop, so an `out` that stalls, such as
    /// a pipe that nobody reads, stalls the kernel. What `out` refuses is not written and not
    /// reported.
    pub fn trace_to(&mut self, mut out: impl io::Write + 'static) {
        let head = trace::header(self.machine.clock_name(), self.machine.seed());
        let _ = writeln!(out, "{head}");
        self.observe(Writer::new(out));
    }

    /// Adds `ran=`, `waited=` and `late=` to the lines of the trace, which is then no longer the
    /// same from run to run.
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
    /// A shutdown that begins meanwhile ([`Options::shutdown_on`]) lets main run on: it ends by
    /// itself, as [`traps::shutdown::begun`] tells it to, or is cancelled when the drain is over.
    /// There is no next run then, only [`Kernel::shutdown`].
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

    /// The same for a caller further out.
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

    /// Ends the kernel, phase by phase, each with its line (row F18):
    ///
    /// - *gate*: [`traps::shutdown::has_begun`] is true, and who waits for that is woken. A signal
    ///   of [`Options::shutdown_on`] does this in the midst of a run;
    /// - *drain*: until every [`traps::shutdown::hold`] is dropped, at most [`Options::drain`]; no
    ///   time where there is none. Another such signal ends it;
    /// - *cancel*: all tasks that are left, newest first;
    /// - *cleanup*: until they have ended, and those that they spawned, which are cancelled too; at
    ///   most [`Options::grace`]. Then what is left is dropped, newest first;
    /// - *halt*: jobs on threads, those left behind too, have what remains of that grace; jobs that
    ///   a simulated machine plays have none. Then a line names those that still run.
    ///
    /// All together take no longer than the drain and one grace, and no step that fails skips the
    /// next. A shutdown that finds nothing says only that it halts. The kernel does not run again.
    ///
    /// # Errors
    ///
    /// [`Error::Machine`]; on a simulated machine also [`Error::Hang`], where a drain or a grace
    /// has no end and nothing can happen any more. The later phases are gone through all the same.
    ///
    /// # Panics
    ///
    /// If a kernel runs on this thread, as in its task.
    pub fn shutdown(&mut self) -> Result<(), Error> {
        self.shutdown_because("shutdown")
    }

    /// Closes the wake queue. What is in it is foreign, each message for itself: two panics at once
    /// would end the process.
    pub(crate) fn drop_messages(&mut self) {
        self.wakes.close().into_iter().for_each(drop_quietly);
    }

    fn shutdown_because(&mut self, reason: &str) -> Result<(), Error> {
        if self.has_halted() {
            return Ok(());
        }
        let ended = self.shut_down(reason);
        // Whoever waits for what was not heeded hears that it never will be.
        self.drop_messages();
        // What is dropped from now on, such as a socket, is not kept for a next run.
        self.gate.close(self.epoch);
        ended
    }
}

impl<M: Machine> fmt::Debug for Kernel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

impl<M: Machine> Drop for Kernel<M> {
    fn drop(&mut self) {
        // In the name of no task: it may be dropped in one of another kernel.
        self.gate.clone().aside(|| self.let_go());
    }
}

impl<M: Machine> Kernel<M> {
    fn let_go(&mut self) {
        for task in self.tasks.drain() {
            drop_quietly(task);
        }
        // A queue may live on, and be waited on in another kernel.
        for entry in self.waits.take_all() {
            if let Wait::Queue(queue) = entry.wait {
                queue.reset();
            }
        }
        self.workers.outlook.abandon_all();
        self.workers.reset_limiters();
        self.workers.take_all().into_iter().for_each(drop_quietly);
        self.machine.drop_jobs();
        self.drop_messages();
        self.gate.close(self.epoch);
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
