//! The kernel as its owner uses it: build, run, shut down, observe.
//!
//! A shutdown has five phases: close, drain, cancel, cleanup, halt. Each phase has its line in the
//! log, and a phase that fails does not skip the next one. Together they take no longer than the
//! drain and one grace period.

#[cfg(unix)]
use std::fs::File;
#[cfg(unix)]
use std::io::BufWriter;
use std::panic::{Location, resume_unwind};
use std::pin::pin;
#[cfg(unix)]
use std::process::{ExitCode, Termination};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io, mem};

use traps::Site;
use traps::internal::protocol::{End, ScopeKind};
use traps::internal::{drop_quietly, into_panic_message, tape};
use traps::{Signal, Time};

use crate::core::dispatch::OVER;
use crate::core::sched::Sched;
use crate::core::timers::{ServiceTimer, lives};
use crate::core::turn::{Failure, Running};
use crate::core::{Core, MainPoll, Services};
use crate::log::flight::{Flight, Recorder};
use crate::log::lines::{announce, emit};
use crate::log::{Activation, KERNEL, Teed, Writer};
use crate::machine::{Arrivals, JobView, Machine, WaitLimit};
#[cfg(unix)]
use crate::machine::{Real, number};
use crate::options::{HALT_PAUSE, Options, RunError};
use crate::parts::sweep::{Injected, TrapSeen};
use crate::services::All;
use crate::services::remote::Remote;
use crate::services::shutdown::{Shutdown, Stage};
use crate::services::signals::Signals;
use crate::services::threads::{Orphan, Threads};
use crate::services::watchdog::{Stuck, Watchdog};
use crate::trace::{self, After, Event, Phase};
use crate::view::{Counters, Outstanding, TaskTable, TaskView, hangs};

/// A single-threaded kernel over a machine: [`Real`] or [`Sim`](crate::Sim).
///
/// It belongs to the thread that made it, and a thread has one kernel at a time. After a kernel is
/// dropped, its thread may make another one. A future or a handle that is left over from the first
/// kernel then belongs to no kernel, and does nothing.
///
/// Tasks that have not ended when main ends stay parked, and continue in the next run.
///
/// ```
/// use std::time::Duration;
/// use kernel::{Kernel, Sim};
/// use traps::{sleep, spawn};
///
/// let mut kernel = Kernel::new(Sim::new());
/// kernel.run(async {
///     let child = sleep(Duration::from_secs(2));
///     spawn("child", child).detached().await;
/// }).unwrap();
/// assert_eq!(kernel.tasks()[0].name, "child"); // main has not waited for it
/// kernel.run(sleep(Duration::from_secs(5))).unwrap().unwrap(); // it ends in this run
/// assert!(kernel.is_quiescent());
/// kernel.shutdown().unwrap();
/// ```
pub struct Kernel<M: Machine> {
    pub(crate) core: Core<M>,
    pub(crate) services: All,
    /// Whether the kernel is running, or was stopped by a panic in a run.
    is_running: bool,
}

impl<M: Machine> Kernel<M> {
    /// Makes a kernel with the default options.
    ///
    /// # Panics
    ///
    /// Panics if this thread already has a kernel.
    #[must_use]
    pub fn new(machine: M) -> Kernel<M> {
        Kernel::with_options(machine, Options::default())
    }

    /// Makes a kernel with these options.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Kernel::new`], and if the options have a file for the trace:
    /// call [`Kernel::trace_to`] instead.
    #[must_use]
    pub fn with_options(machine: M, options: Options) -> Kernel<M> {
        assert!(options.trace.is_none(), "rule: `Options::trace` is for `kernel::main`");
        let core = Core::new(machine, options);
        let clock = core.sched.machine.thread_clock();
        let services = All {
            threads: Threads::new(&core.options, clock, &core.wakeup.inbox.queue),
            signals: Signals::default(),
            shutdown: Shutdown::default(),
            watchdog: Watchdog::default(),
            remotes: Arc::default(),
        };
        Kernel { core, services, is_running: false }
    }

    /// Passes every event from now on to `activation`. Without the feature `trace` it gets no
    /// events. If it panics, it ends the run with its panic, and this kernel can only be dropped.
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    /// use kernel::trace::{Event, Line};
    /// use kernel::{Kernel, Sim};
    ///
    /// let mut kernel = Kernel::new(Sim::new());
    /// let fired = Rc::new(Cell::new(0));
    /// let count = fired.clone();
    /// kernel.observe(move |line: &Line<'_>| {
    ///     if let Event::Fire { .. } = line.event {
    ///         count.set(count.get() + 1);
    ///     }
    /// });
    /// kernel.run(traps::sleep(Duration::from_secs(1))).unwrap().unwrap();
    /// assert_eq!(fired.get(), 1);
    /// ```
    pub fn observe(&mut self, activation: impl Activation + 'static) {
        self.core.sched.log.add(Box::new(activation));
        self.core.refresh_flags(&self.services);
    }

    /// Writes the stable trace to `out`. Flushes `out` when the kernel goes to sleep, at a `panic`
    /// and at the `halt`. Without the feature `trace`, writes only the head.
    ///
    /// The kernel's loop writes the trace. An `out` that stalls, such as a pipe without a reader,
    /// stalls the kernel. Lines that `out` refuses are dropped without an error.
    ///
    /// [`Kernel::time_the_trace`] adds how long each run of a task took. Without it, a
    /// line has the time of the last reading of the clock, so a run may seem to include runs before
    /// it.
    ///
    /// In a [recording](Kernel::record_to) kernel, the first call also writes the lines into the
    /// record, if it comes before the first run: a record has the log from its first line, or not
    /// at all. If only the record is to have the log, `out` is [`io::sink`].
    ///
    /// ```
    /// use std::io::Read;
    /// use kernel::{Kernel, Sim};
    ///
    /// let (mut log, out) = std::io::pipe()?; // or `std::io::stdout()`, or a file
    /// let mut kernel = Kernel::new(Sim::new());
    /// kernel.trace_to(out);
    /// kernel.run(traps::yield_now())?.unwrap();
    /// drop(kernel); // and with it `out`
    /// let mut text = String::new();
    /// log.read_to_string(&mut text)?;
    /// assert!(text.starts_with("#trace v3 clock=virtual seed=0 tick=0.3s"));
    /// assert!(text.contains("main     block    yield"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trace_to(&mut self, out: impl io::Write + 'static) {
        let Core { sched: Sched { machine, log, .. }, options, wakeup, .. } = &mut self.core;
        let is_first = !mem::replace(&mut log.is_recorded, true) && !wakeup.has_begun;
        let head = trace::header(machine.clock_name(), machine.seed(), options.tick_in_force());
        let mut out = Teed(out, M::IS_TAPED && is_first);
        let _ = io::Write::write_all(&mut out, format!("{head}\n").as_bytes());
        self.observe(Writer::new(out));
    }

    /// Keeps the last lines of the log in so many bytes of memory, for a look at what happened
    /// before something went wrong. 16 MiB have 600,000 lines or more. The lines that are in force
    /// when the first of them was written come on top: some for each task, and as many for each of
    /// its waits and scopes.
    ///
    /// [`Flight::dump`] hands a [`Dump`](crate::Dump) to the hook of [`Flight::on_dump`], which
    /// writes it, on a thread of its own. The kernel makes a dump by itself
    ///
    /// - if a task panics (cause `panic`),
    /// - if some tasks wait for each other in a circle (`deadlock`),
    /// - if no task can ever run again (`hang`),
    /// - if the watchdog finds a stuck task (`watchdog`).
    ///
    /// Without the feature `trace` a dump has no lines.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use kernel::{Kernel, Sim};
    ///
    /// let mut kernel = Kernel::new(Sim::new());
    /// let (sender, dumps) = mpsc::channel();
    /// kernel.flight(1 << 20).on_dump(move |dump| sender.send(dump.to_string()).unwrap());
    /// let hangs = kernel.run(std::future::pending::<()>());
    /// assert!(hangs.is_err());
    /// let dump = dumps.recv().unwrap();
    /// let (_, lines) = dump.split_once("# flight from=#0001 cause=hang at=#0006\n").unwrap();
    /// assert!(lines.lines().last().unwrap().contains("2 main     block    waker"));
    /// ```
    pub fn flight(&mut self, bytes: usize) -> Flight {
        let Core { sched: Sched { machine, log, .. }, options, .. } = &mut self.core;
        let head = trace::header(machine.clock_name(), machine.seed(), options.tick_in_force());
        let flight = Flight::new(bytes, head);
        log.flight = Some(Box::new(Recorder(flight.clone())));
        let dumped = flight.clone();
        self.services.watchdog.set_dump(move || dumped.dump("watchdog"));
        self.core.refresh_flags(&self.services);
        flight
    }

    /// Adds the measured times `ran=`, `waited=` and `late=` to the lines of the trace. The trace
    /// then differs from run to run.
    pub fn time_the_trace(&mut self) {
        self.core.sched.log.timed = true;
    }

    /// Returns the machine below the kernel.
    pub fn machine(&self) -> &M {
        &self.core.sched.machine
    }

    /// Runs `main` as a task, and returns its output as soon as it has ended. Other tasks stay
    /// parked, and continue in the next run.
    ///
    /// If a shutdown begins during the run ([`Options::shutdown_on`]), main is cancelled when the
    /// drain is over. If main has asked about the shutdown, the drain waits for it, so that it can
    /// end by itself. After that the kernel cannot run again; only [`Kernel::shutdown`] remains.
    ///
    /// # Errors
    ///
    /// Returns a [`RunError`] if the machine failed, if no task can ever run again, if the kernel
    /// was shut down, or if a shutdown that began during the run had to drop main.
    ///
    /// # Panics
    ///
    /// If main panics, shuts the kernel down and then panics with main's panic. If the shutdown
    /// fails, too, panics with a text that has the message of main and the error. If an
    /// [observer](Kernel::observe) panics, panics with that panic. This kernel can then only be
    /// dropped; running it or shutting it down panics.
    #[track_caller]
    pub fn run<F: Future>(&mut self, main: F) -> Result<F::Output, RunError> {
        self.run_from(main, Location::caller())
    }

    /// Runs `main` like [`Kernel::run`], for a wrapper that passes its caller's location.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Kernel::run`].
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Kernel::run`].
    ///
    /// ```
    /// use std::panic::Location;
    /// use kernel::{Kernel, RunError, Sim};
    ///
    /// /// Runs `main` on a new simulated machine. In its log, main has the site of this call.
    /// #[track_caller]
    /// fn simulate<F: Future>(main: F) -> Result<F::Output, RunError> {
    ///     Kernel::new(Sim::new()).run_from(main, Location::caller())
    /// }
    ///
    /// assert_eq!(simulate(async { 42 }).unwrap(), 42);
    /// ```
    pub fn run_from<F: Future>(&mut self, main: F, site: Site) -> Result<F::Output, RunError> {
        if self.services.shutdown.is_closing() {
            return Err(RunError::Shut);
        }
        let mut output = None;
        let ended = {
            let mut main = pin!(main);
            let mut poll = |cx: &mut Context<'_>| {
                let polled = main.as_mut().poll(cx);
                polled.map(|value| output = Some(value))
            };
            self.running(|kernel| kernel.run_main(&mut poll, site))
        };
        if let Some(panic) = self.core.main_panic.take() {
            match ended.and(self.shutdown_because("main_panicked")) {
                Ok(()) => resume_unwind(panic),
                Err(error) => panic!("main panicked: {}\n{error}", into_panic_message(panic)),
            }
        }
        ended?;
        Ok(output.expect("a run ends when main has ended"))
    }

    /// Ends the kernel in phases. Each phase has a line in the log:
    ///
    /// - *close*: from now on, [`traps::shutdown::has_begun`] is true. The tasks that wait for the
    ///   shutdown are woken. During a run, a signal of [`Options::shutdown_on`] has the same
    ///   effect.
    /// - *drain*: waits until every [`traps::shutdown::hold`] is dropped, and until main has ended
    ///   if it has asked about the shutdown, at most [`Options::drain`].
    /// - *cancel*: cancels the remaining tasks, newest first.
    /// - *cleanup*: waits until these tasks have ended, at most [`Options::grace`]. Tasks that they
    ///   spawn are cancelled and waited for too. Then drops the remaining futures, newest first.
    /// - *halt*: waits for jobs on threads, abandoned ones included, for the rest of the grace
    ///   period. Then a line names the jobs that still run. Does not wait for the look-up of a
    ///   name, nor for scripted jobs of a simulated machine.
    ///
    /// Each further signal ends the present phase. Together the phases take no longer than the
    /// drain and one grace period. If a phase fails, the next ones still take place. If there is no
    /// task to end, the shutdown has only the line of the halt. The kernel cannot run again.
    ///
    /// # Errors
    ///
    /// Returns [`RunError::Machine`] if the machine fails. Returns [`RunError::Hang`] if a drain or
    /// a grace period has no limit and nothing can happen any more. The later phases still take
    /// place.
    ///
    /// # Panics
    ///
    /// Panics if a panic has stopped this kernel; see [`Kernel::run`].
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    /// use kernel::{Kernel, RunError, Sim};
    /// use traps::{sleep, spawn, yield_now};
    ///
    /// let mut kernel = Kernel::new(Sim::new());
    /// let is_clean = Rc::new(Cell::new(false));
    /// let cleans = is_clean.clone();
    /// let server = async move {
    ///     assert!(sleep(Duration::MAX).await.is_err()); // cancelled by the shutdown
    ///     sleep(Duration::from_secs(1)).await.unwrap(); // the clean-up may wait
    ///     cleans.set(true);
    /// };
    /// kernel.run(async {
    ///     spawn("server", server).detached().await;
    ///     yield_now().await // so that the server runs
    /// }).unwrap().unwrap();
    /// kernel.shutdown().unwrap();
    /// assert!(is_clean.get());
    /// assert!(matches!(kernel.run(async {}), Err(RunError::Shut)));
    /// ```
    pub fn shutdown(&mut self) -> Result<(), RunError> {
        self.shutdown_because("shutdown")
    }

    fn shutdown_because(&mut self, reason: &str) -> Result<(), RunError> {
        if self.services.shutdown.stage == Stage::Halted {
            return Ok(());
        }
        let ended = self.running(|kernel| kernel.shut_down(reason));
        // Threads that wait for an unhandled message learn here that it will never be handled.
        self.drop_messages();
        if M::IS_TAPED { self.end_tape(ended) } else { ended }
    }

    /// Closes the wake queue, and drops its messages one by one. They contain user code, and two
    /// panics at once would abort the process.
    fn drop_messages(&mut self) {
        self.core.wakeup.inbox.queue.close().into_iter().for_each(drop_quietly);
    }

    /// Calls `code`, with this kernel marked as the running one on its thread. If `code` panics,
    /// the kernel stays as it is: half of a step may be done.
    fn running<T>(
        &mut self,
        code: impl FnOnce(&mut Self) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let rule = "rule: a kernel that a panic has stopped can only be dropped";
        assert!(!mem::replace(&mut self.is_running, true), "{rule}");
        let running = Running::begin(&self.core);
        let _idle = self.services.watchdog.idle_at_the_end();
        let result = if M::IS_TAPED { self.until_stop(code) } else { code(self) };
        drop(running);
        self.is_running = false;
        result
    }

    /// Runs turns until main has ended.
    fn run_main(&mut self, main: MainPoll<'_>, site: Site) -> Result<(), RunError> {
        self.start()?;
        let task = self.core.add_main(site);
        // Handle the posts made between two runs before the timers that are due in this run.
        self.core.serve_between_runs(&mut self.services);
        while !self.core.main_ended {
            if let Err(error) = self.turn(main) {
                let event = Event::Drop { why: "its_run_failed".into() };
                self.core.sched.log.cause = emit!(self.core.sched, task, event);
                self.core.end_task(task, End::Dropped);
                return Err(error);
            }
            let Kernel { core, services, .. } = self;
            let is_closing = services.shutdown.is_closing() && !core.main_ended;
            if is_closing && services.shutdown.end_main(core, task) {
                return Err(RunError::Overdue);
            }
        }
        self.core.serve(&mut self.services);
        Ok(())
    }

    fn start(&mut self) -> Result<(), RunError> {
        let Kernel { core, services, .. } = self;
        // A replay has no time, and no thread that could watch it.
        let watched = !(M::IS_TAPED && tape::answers());
        let watchdog = core.options.watchdog.filter(|_| watched);
        services.watchdog.start(watchdog).map_err(RunError::Machine)?;
        services.signals.watch_own(core).map_err(RunError::Machine)?;
        core.start(services);
        Ok(())
    }

    /// Runs one turn. If the machine fails, the kernel takes no new requests from other threads
    /// from then on. A shutdown still handles the results of jobs, and wakes.
    pub(crate) fn turn(&mut self, main: MainPoll<'_>) -> Result<(), RunError> {
        let is_idle = self.core.sched.ready.is_empty()
            && self.core.timers.next_live(&mut self.core.sched.gate.records()).is_none();
        let hangs = || match M::IS_TAPED && tape::answers() {
            false => hangs(&self.core, &self.services.remotes, || self.counters()),
            true => tape::is_next("hang"),
        };
        if is_idle && hangs() {
            tape::mark("hang");
            return Err(self.hang());
        }
        if M::IS_TAPED {
            self.warn_of_tape();
        }
        let Kernel { core, services, .. } = self;
        match core.turn(services, main) {
            Ok(()) => Ok(()),
            Err(Failure::Machine(error)) => {
                services.shutdown.failed = true;
                core.wakeup.inbox.queue.seal();
                Err(RunError::Machine(error))
            }
            Err(Failure::Hang) if self.is_quiescent() => Err(self.hang()),
            Err(Failure::Hang) => Ok(()),
        }
    }

    /// Marks the kernel as shut down, because a replay has stopped in the middle of a step.
    pub(crate) fn halt_at_once(&mut self) {
        self.services.shutdown.stage = Stage::Halted;
        self.core.sched.log.end();
    }

    fn hang(&self) -> RunError {
        let log = &self.core.sched.log;
        log.dump("hang", log.seq);
        RunError::Hang(self.task_table().to_string().trim_end().to_owned())
    }
}

/// Observation, hooks, and access for other threads.
impl<M: Machine> Kernel<M> {
    /// Returns a snapshot of the tasks that have not ended, ordered by number.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskView> {
        TaskView::all(&self.core)
    }

    /// Returns a snapshot of the tasks that have not ended, as a table. O(tasks + waits).
    #[must_use]
    pub fn task_table(&self) -> TaskTable {
        TaskTable::of(&self.core)
    }

    /// Returns a snapshot of the jobs that have not ended, ordered by number. A job with a token,
    /// abandoned or not, has held the token [since](JobView::since).
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Kernel, Sim};
    /// use traps::{run_in_thread, timeout_after};
    ///
    /// let second = Duration::from_secs(1);
    /// let mut kernel = Kernel::new(Sim::new().jobs_take(3 * second));
    /// let late = kernel.run(timeout_after(second, run_in_thread(|| 42))).unwrap();
    /// assert!(late.is_err());
    /// assert_eq!(kernel.jobs()[0].state, "abandoned"); // its thread is still busy
    /// ```
    #[must_use]
    pub fn jobs(&self) -> Vec<JobView> {
        self.services.threads.views(&self.core.sched.tasks)
    }

    /// Returns the counters: counts of the things that the kernel holds now, and of its events so
    /// far. O(waits and scopes of this thread).
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Kernel, Sim};
    ///
    /// let mut kernel = Kernel::new(Sim::new());
    /// kernel.run(traps::sleep(Duration::from_secs(1))).unwrap().unwrap();
    /// let counters = kernel.counters();
    /// assert_eq!((counters.traps, counters.timers), (1, 0)); // one trap so far, no timer now
    /// ```
    #[must_use]
    pub fn counters(&self) -> Counters {
        let Kernel { core, services, .. } = self;
        let tokens = &services.threads.tokens;
        let records = core.sched.gate.records();
        let scopes = || records.scopes.iter();
        let is_open =
            |kind| !matches!(kind, ScopeKind::Task | ScopeKind::Deadline(_) | ScopeKind::Closed);
        Counters {
            tasks: core.sched.tasks.alive(),
            tickets: records.waits.iter().count(),
            cut_off: services.shutdown.cut_off,
            scopes: scopes().filter(|(_, scope)| is_open(scope.kind)).count(),
            timers: core.timers.len(|owner| lives(&records, owner))
                + core.sched.shared.deadlines.armed(),
            deadlines: core.sched.shared.deadlines.alive(),
            registered: core.handles.registered,
            handles: core.handles.known,
            jobs: tokens.jobs.len(),
            queued: tokens.queued(),
            tokens: tokens.in_use,
            tokens_peak: tokens.peak,
            tokens_held: tokens.held,
            abandoned: tokens.abandoned(),
            threads: services.threads.pool.threads(),
            pending: scopes().filter(|(id, it)| it.fired.is_some() && !it.was_taken(*id)).count(),
            turns: core.sched.turn,
            rings: core.wakeup.inbox.queue.rings(),
            polls: core.machine_waits,
            registers: core.handles.changes[0],
            unregisters: core.handles.changes[1],
            traps: core.sched.traps,
            scans: core.scans.count,
            wakes: core.wakeup.wakes,
            batches: core.wakeup.batches,
            stale: core.sched.stale,
        }
    }

    /// Counts the events that could still happen. O(waits and scopes of this thread).
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Kernel, Sim};
    /// use traps::{sleep, spawn, yield_now};
    ///
    /// let mut kernel = Kernel::new(Sim::new());
    /// kernel.run(async {
    ///     spawn("child", sleep(Duration::from_secs(60))).detached().await;
    ///     yield_now().await // so that the child runs
    /// }).unwrap().unwrap();
    /// let outstanding = kernel.outstanding();
    /// assert_eq!((outstanding.ready, outstanding.timers), (0, 1));
    /// assert!(!outstanding.is_nothing());
    /// ```
    #[must_use]
    pub fn outstanding(&self) -> Outstanding {
        Outstanding::of(&self.core, &self.counters())
    }

    /// Returns whether nothing more can happen, so that the kernel could only wait forever.
    #[must_use]
    pub fn is_quiescent(&self) -> bool {
        self.outstanding().is_nothing()
    }

    /// Calls `hook` before each trap is dispatched, from now on. If the hook returns an interrupt,
    /// the task that made the trap gets it. A blocking trap ends with the interrupt. After a trap
    /// that does not block, the interrupt is pending until the next one that blocks. Scopes and
    /// spawns count as traps.
    ///
    /// For tests that interrupt a program.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Injected, Kernel, Sim};
    /// use traps::sleep;
    ///
    /// let second = Duration::from_secs(1);
    /// let mut kernel = Kernel::new(Sim::new());
    /// kernel.before_each_trap(|trap| (trap.number == 2).then_some(Injected::Cancellation));
    /// let ended = kernel.run(async {
    ///     sleep(second).await?;
    ///     sleep(second).await // the second trap
    /// });
    /// assert!(ended.unwrap().unwrap_err().is_cancelled());
    /// ```
    pub fn before_each_trap(
        &mut self,
        hook: impl FnMut(&TrapSeen<'_>) -> Option<Injected> + 'static,
    ) {
        self.core.hook.before = Some(Box::new(hook));
        self.core.refresh_flags(&self.services);
    }

    /// Calls `hook` with the value of a job if no task takes it: no task waits for the job when it
    /// ends, or the value is dropped before it is read. The hook can close a connection in the
    /// value, for example.
    ///
    /// The kernel's loop calls the hook, so it must not block. A panic in it is caught. Replaces an
    /// earlier hook.
    ///
    /// The hook does not get the items of [`iterate_in_thread`](traps::iterate_in_thread()): an
    /// item waits for the next call, or is dropped with its source. The only exception is the panic
    /// of an iterator whose source is gone.
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    /// use kernel::{Kernel, Sim};
    /// use traps::{run_in_thread, sleep, timeout_after};
    ///
    /// let second = Duration::from_secs(1);
    /// let mut kernel = Kernel::new(Sim::new().jobs_take(3 * second));
    /// let late = Rc::new(Cell::new(0));
    /// let keeps = late.clone();
    /// kernel.on_orphan(move |orphan| {
    ///     keeps.set(*orphan.outcome.unwrap().downcast::<i32>().unwrap());
    /// });
    /// kernel.run(async {
    ///     assert!(timeout_after(second, run_in_thread(|| 42)).await.is_err());
    ///     sleep(9 * second).await // the job ends in this time
    /// }).unwrap().unwrap();
    /// assert_eq!(late.get(), 42);
    /// ```
    pub fn on_orphan(&mut self, hook: impl FnMut(Orphan) + 'static) {
        self.services.threads.on_orphan = Some(Box::new(hook));
    }

    /// Calls `hook` with the task table in the turn in which `signal` arrives, whether or not a
    /// task waits for the signal. From the next run on, the signal no longer ends the process.
    ///
    /// The kernel's loop calls the hook, so it must not block. A panic in it ends nothing. A task
    /// that does not leave the CPU delays the hook. Hooks are for reports: if only a hook could
    /// wake a kernel, the run ends with [`RunError::Hang`]. To wait for a signal in a task, use
    /// [`traps::signals`](traps::signals()).
    ///
    /// ```
    /// use std::{cell::RefCell, rc::Rc, time::Duration};
    /// use kernel::{Kernel, Sim};
    /// use traps::{Signal, Time};
    ///
    /// let second = Duration::from_secs(1);
    /// let sim = Sim::new().signal_at(Time::ZERO + second, Signal::User1);
    /// let mut kernel = Kernel::new(sim);
    /// let report = Rc::new(RefCell::new(String::new()));
    /// let writes = report.clone();
    /// kernel.on_signal(Signal::User1, move |tasks| *writes.borrow_mut() = tasks.to_string());
    /// kernel.run(traps::sleep(2 * second)).unwrap().unwrap();
    /// assert!(report.borrow().starts_with("1 task at 1.000000"));
    /// ```
    pub fn on_signal(&mut self, signal: Signal, hook: impl FnMut(&TaskTable) + 'static) {
        self.services.signals.add_hook(signal, Box::new(hook));
    }

    /// Calls `hook` with each report of the watchdog ([`Options::watchdog`]). The watchdog reports
    /// when a run has lasted for the option's duration, each time that this duration has doubled,
    /// and when the run has ended. Each report is also a warning in the log, with the target
    /// `kernel::sched`.
    ///
    /// The watchdog's thread calls the hook while the kernel may be stuck, so the hook must not
    /// wait for the kernel. Dropping the kernel waits for the hook. A panic in it is caught.
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use kernel::{Kernel, Options, Sim};
    ///
    /// let options = Options::new().watchdog(Some(Duration::from_millis(1)));
    /// let mut kernel = Kernel::with_options(Sim::new(), options);
    /// let (sender, reports) = mpsc::channel();
    /// kernel.on_stuck(move |stuck| _ = sender.send(stuck.name.clone()));
    /// // A task must not block its thread. This one does, until the watchdog has seen it.
    /// let name = kernel.run(async { reports.recv_timeout(Duration::from_secs(60)) });
    /// assert_eq!(name.unwrap().unwrap(), "main");
    /// ```
    pub fn on_stuck(&mut self, hook: impl Fn(&Stuck) + Send + Sync + 'static) {
        self.services.watchdog.set_hook(hook);
    }

    /// Returns a handle to this kernel for other threads. Costs a reference count.
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote::new(self.core.wakeup.inbox.queue.clone(), self.services.remotes.clone())
    }

    /// Runs the tasks that main has left until nothing more can happen, or for at most `limit` of
    /// kernel time. Parked tasks that nothing can wake stay parked. Blocks this thread. Returns
    /// whether nothing more can happen; returns `false` as soon as a shutdown begins. With a limit
    /// of zero, runs one turn that does not wait.
    ///
    /// The limit does not bound the wait of a simulated machine for a real thread.
    ///
    /// # Errors
    ///
    /// Returns [`RunError::Machine`] if the machine fails, and [`RunError::Shut`] after a shutdown.
    ///
    /// # Panics
    ///
    /// Panics if a panic has stopped this kernel; see [`Kernel::run`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Kernel, Sim};
    /// use traps::{sleep, spawn};
    ///
    /// let minute = Duration::from_secs(60);
    /// let mut kernel = Kernel::new(Sim::new());
    /// kernel.run(async { spawn("child", sleep(minute)).detached().await }).unwrap();
    /// assert!(!kernel.run_until_quiescent(minute / 2).unwrap()); // the child still sleeps
    /// assert!(kernel.run_until_quiescent(minute).unwrap());
    /// assert_eq!(kernel.tasks(), []);
    /// ```
    pub fn run_until_quiescent(&mut self, limit: Duration) -> Result<bool, RunError> {
        if self.services.shutdown.is_closing() {
            return Err(RunError::Shut);
        }
        self.running(|kernel| kernel.run_until_quiet(limit))
    }

    fn run_until_quiet(&mut self, limit: Duration) -> Result<bool, RunError> {
        self.start()?;
        self.core.serve_between_runs(&mut self.services);
        let end = self.core.sched.now + limit;
        self.core.bound = Some(end);
        let mut nobody = |_: &mut Context<'_>| Poll::Pending;
        let (mut ended, mut is_first) = (Ok(()), true);
        while ended.is_ok()
            && !self.services.shutdown.is_closing()
            && !self.is_quiescent()
            && (is_first || self.core.sched.now < end)
        {
            is_first = false;
            ended = self.turn(&mut nobody);
        }
        self.core.bound = None;
        ended.map(|()| !self.services.shutdown.is_closing() && self.is_quiescent())
    }
}

impl<M: Machine> fmt::Debug for Kernel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

/// Drops the remaining tasks, newest first, with a log line for each, and abandons the jobs on
/// threads.
impl<M: Machine> Drop for Kernel<M> {
    fn drop(&mut self) {
        if M::IS_TAPED { self.drop_taped() } else { self.drop_all() }
    }
}

impl<M: Machine> Kernel<M> {
    pub(crate) fn drop_all(&mut self) {
        let Kernel { core, services, .. } = self;
        let running = Running::begin(core);
        // A panic may have stopped the kernel while a task ran.
        core.sched.run.task = None;
        core.drop_tasks(services, "its_kernel_is_dropped");
        core.serve(services);
        services.threads.drop_all(core);
        drop(running);
        self.drop_messages();
    }

    /// Drops the futures of the tasks and nothing else, because a replay has stopped in the middle
    /// of a step.
    pub(crate) fn drop_futures(&mut self) {
        let Kernel { core, services, .. } = self;
        let running = Running::begin(core);
        for index in core.sched.tasks.newest_first(0) {
            drop_quietly(core.sched.tasks[index].body.take());
        }
        services.threads.drop_all(core);
        drop(running);
        self.drop_messages();
    }
}

/// Runs `program` as the main task of the process: on the operating system, with a shutdown at the
/// end. Returns the exit code for the `main` of the program.
///
/// If the program returns an error, prints the error to standard error, as a `main` that returns it
/// would. The shutdown can cut off work: [holds](traps::shutdown::hold) at the end of the drain,
/// tasks at the end of the grace period, and jobs that still run on threads. Then one line names
/// their numbers, and the exit code is 1.
///
/// If a signal of [`Options::shutdown_on`] has cancelled the program, the exit code is 128 plus the
/// number of the signal, as in a shell: 130 for Ctrl-C, even if work was cut off. Then the output
/// of the program is dropped unprinted, so a program prints errors of its clean-up itself. If the
/// shutdown has cancelled other tasks only, the exit code is that of the program's output: 0 for a
/// server whose accept loop has returned.
///
/// ```no_run
/// use std::process::ExitCode;
/// use std::time::Duration;
///
/// use kernel::Options;
/// use traps::Signal;
///
/// async fn program() -> Result<(), traps::Interrupt> {
///     traps::sleep(Duration::from_secs(1)).await?;
///     println!("a second later");
///     Ok(())
/// }
///
/// fn main() -> ExitCode {
///     let options = Options::new().shutdown_on(&[Signal::Interrupt]).trace("program.trace");
///     kernel::main(options, program())
/// }
/// ```
///
/// # Panics
///
/// Panics in the same cases as [`run`].
#[cfg(unix)]
#[track_caller]
pub fn main<F: Future<Output: Termination>>(mut options: Options, program: F) -> ExitCode {
    let trace = options.trace.take();
    let mut kernel = match Real::new() {
        Ok(real) => Kernel::with_options(real, options),
        Err(error) => return failure(RunError::Machine(error)),
    };
    if let Some(path) = trace {
        match File::create(&path) {
            Ok(file) => kernel.trace_to(BufWriter::new(file)),
            Err(error) => {
                eprintln!("Error: cannot create the trace {}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        }
    }
    let output = kernel.run(program);
    let signal = kernel.services.shutdown.signal.filter(|_| kernel.core.main_was_cut);
    let ended = kernel.shutdown();
    // The number of a signal is below 128.
    let cut = signal.map(|signal| ExitCode::from(128 + number(signal) as u8));
    // The output of a cancelled program is most often the interrupt, which the exit code reports.
    let code = output.map_or_else(failure, |output| cut.unwrap_or_else(|| output.report()));
    let code = ended.map_or_else(failure, |()| code);
    let code = kernel.cut_off().map_or(code, |what| {
        eprintln!("Error: the shutdown cut off work in progress: {what}");
        ExitCode::FAILURE
    });
    cut.unwrap_or(code)
}

/// Prints the error of a kernel, and returns the exit code for it.
#[cfg(unix)]
fn failure(error: RunError) -> ExitCode {
    eprintln!("Error: {}", io::Error::from(error));
    ExitCode::FAILURE
}

/// Runs `main` on the operating system with the default options, shuts down, and returns the output
/// of `main`. For the `main` of a program, [`main`] is shorter.
///
/// ```
/// use std::time::Duration;
///
/// let slept = kernel::run(traps::sleep(Duration::from_millis(1)));
/// assert!(slept.unwrap().is_ok()); // the kernel's error, and the program's own
/// ```
///
/// # Errors
///
/// Returns the errors of [`Kernel::run`] and [`Kernel::shutdown`].
///
/// # Panics
///
/// Panics in the same cases as [`Kernel::new`] and [`Kernel::run`].
#[cfg(unix)]
#[track_caller]
pub fn run<F: Future>(main: F) -> Result<F::Output, RunError> {
    let mut kernel = Kernel::new(Real::new().map_err(RunError::Machine)?);
    let output = kernel.run(main);
    // Shut down after a failure too, so that the remaining tasks end and the log has their ends.
    let ended = kernel.shutdown();
    let output = output?;
    ended?;
    Ok(output)
}

/// Returns `Pending` in place of a poll of main, during a shutdown.
fn nobody(_: &mut Context<'_>) -> Poll<()> {
    Poll::Pending
}

impl<M: Machine> Kernel<M> {
    /// Describes the work that the shutdown has cut off, if there is any.
    #[cfg(unix)]
    fn cut_off(&self) -> Option<String> {
        let shutdown = &self.services.shutdown;
        let jobs = self.services.threads.tokens.needed() as u64;
        let left = [("holds", shutdown.cut_off), ("tasks", shutdown.dropped), ("jobs", jobs)];
        let left = left.iter().filter(|(_, count)| *count > 0);
        let left: Vec<String> = left.map(|(name, count)| format!("{name}={count}")).collect();
        (!left.is_empty()).then(|| left.join(" "))
    }

    /// Runs the phases of [`Kernel::shutdown`], from the one that a run has reached.
    pub(crate) fn shut_down(&mut self, reason: &str) -> Result<(), RunError> {
        let Kernel { core, services, .. } = self;
        core.refresh_flags(services);
        core.sched.now = core.sched.machine.now();
        core.serve_between_runs(services);
        core.main_ended = false;
        let mut ended = Ok(());
        let is_idle = core.sched.tasks.alive() == 0 && core.sched.shared.holds.get() == 0;
        if is_idle && services.shutdown.stage == Stage::Open {
            // There is nothing to wait for, so these phases have no lines.
            core.sched.shared.closing.set(true);
            services.shutdown.until = core.sched.now + core.options.grace;
        } else {
            // The owner has asked for it, and no line.
            core.sched.log.cause = 0;
            services.shutdown.begin(core, reason);
            ended = self.drain();
            let cleaned = self.clean_up();
            ended = ended.and(cleaned);
        }
        self.halt();
        ended
    }

    fn drain(&mut self) -> Result<(), RunError> {
        // A task that the end of main has woken may still take a hold.
        self.core.serve(&mut self.services);
        self.services.shutdown.woken_ran = false;
        while self.services.shutdown.stage == Stage::Drain {
            let Kernel { core, services, .. } = self;
            let shutdown = &mut services.shutdown;
            if let Some(after) = shutdown.end_of_drain(core, false) {
                shutdown.cancel_all(core, after);
            } else if let Err(error) = self.turn(&mut nobody) {
                self.services.shutdown.cancel_all(&mut self.core, After::Failure);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Runs the cancelled tasks until they have ended. Drops the remaining tasks when the grace
    /// period is over, or at once if the machine fails.
    fn clean_up(&mut self) -> Result<(), RunError> {
        let mut ended = Ok(());
        loop {
            let Kernel { core, services, .. } = self;
            services.shutdown.cancel_newer(core);
            let Shutdown { overdue, failed, .. } = services.shutdown;
            if ended.is_err() || core.sched.tasks.alive() == 0 || overdue || failed {
                break;
            }
            ended = self.turn(&mut nobody);
        }
        let Kernel { core, services, .. } = self;
        core.timers.set_service(ServiceTimer::Phase, Time::NEVER);
        if core.sched.tasks.alive() > 0 {
            let tasks = core.sched.tasks.alive() as u64;
            services.shutdown.dropped = tasks;
            announce!(core.sched, KERNEL, Event::Phase(Phase::Drop { tasks }));
            let why = if services.shutdown.failed { "the_machine_has_failed" } else { OVER };
            core.drop_tasks(services, why);
        }
        ended
    }

    /// Waits for the jobs on threads, and reports the jobs that still run.
    fn halt(&mut self) {
        let Kernel { core, services, .. } = self;
        services.shutdown.stage = Stage::Halted;
        core.sched.now = core.sched.machine.now();
        // Refuse other threads now, not after the wait: one of them may run a job that the wait is
        // for.
        core.wakeup.inbox.queue.seal();
        core.run_wakeup(services);
        core.serve(services);
        services.threads.drop_queued(core);
        core.serve(services);
        self.wait_for_jobs();
        let Kernel { core, services, .. } = self;
        let threads = services.threads.tokens.on_threads as u64;
        if threads > 0 {
            let jobs = services.threads.tokens.jobs.keys().map(|job| format!("o{job}"));
            let jobs: Vec<String> = jobs.collect();
            let text = format!("jobs still running on threads, left behind: {}", jobs.join(" "));
            announce!(core.sched, KERNEL, Event::Warn { text: text.into() });
        }
        let counters = self.counters();
        let event = Event::Halt {
            tasks: counters.tasks as u64,
            tickets: counters.tickets as u64,
            timers: counters.timers as u64,
            handles: counters.registered as u64,
            threads,
        };
        announce!(self.core.sched, KERNEL, event);
    }

    /// Waits for the jobs on threads, for the rest of the grace period or until the next signal.
    fn wait_for_jobs(&mut self) {
        let Kernel { core, services, .. } = self;
        let mut rest = services.shutdown.until.since(core.sched.now);
        while services.threads.tokens.needed() > 0 && !rest.is_zero() && !services.shutdown.overdue
        {
            // The pool waits, and the machine is only asked for signals: the wait of a failed
            // machine returns at once, and the clock of a simulated one stands still.
            let pause = rest.min(HALT_PAUSE);
            services.threads.pool.wait_for_workers(pause);
            rest -= pause;
            let mut arrivals = Arrivals::default();
            let _ = core.sched.machine.wait(WaitLimit::Now, &mut arrivals);
            core.sched.now = core.sched.machine.now();
            for signal in arrivals.signals {
                services.signal(core, signal);
            }
            core.run_wakeup(services);
            core.serve(services);
        }
    }
}
