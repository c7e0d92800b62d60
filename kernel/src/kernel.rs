//! The kernel as its owner uses it: build, run, shut down, observe.

use std::fmt;
use std::io;
use std::panic::{Location, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use traps::Signal;
use traps::core::names::Site;
use traps::core::protocol::{End, ScopeKind};
use traps::threads::drop_quietly;

use crate::core::hook::{Injected, Trap};
use crate::core::turn::{Failure, Running};
use crate::core::{Core, MainPoll};
use crate::log::{Activation, Writer, emit};
use crate::machine::{JobView, Machine, Real};
use crate::options::{Error, Options};
use crate::services::All;
use crate::services::remote::Remote;
use crate::services::shutdown::{Shutdown, Stage};
use crate::services::signals::Signals;
use crate::services::threads::{Orphan, Threads};
use crate::services::watchdog::{Stuck, Watchdog};
use crate::trace::{self, Event};
use crate::view::{Counters, Outstanding, TaskTable, TaskView, hangs};

/// A single-threaded kernel over a machine: [`Real`] or [`Sim`](crate::Sim).
///
/// It belongs to the thread that made it. Tasks that are left when main has ended stay parked and
/// go on in the next run.
pub struct Kernel<M: Machine> {
    pub(crate) core: Core<M>,
    pub(crate) services: All,
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
        let core = Core::new(machine, options);
        let clock = core.machine.thread_clock();
        let services = All {
            threads: Threads::new(&core.options, clock, &core.inbox.queue),
            signals: Signals::default(),
            shutdown: Shutdown::default(),
            watchdog: Watchdog::default(),
            remotes: Arc::default(),
        };
        Kernel { core, services }
    }

    /// Gives `activation` every event from now on. In a build without the feature `trace` it gets
    /// none.
    pub fn observe(&mut self, activation: impl Activation + 'static) {
        self.core.log.add(Box::new(activation));
        self.core.look(&self.services);
    }

    /// Writes the stable trace to `out`. Flushes it when the kernel goes to sleep, at a `panic` and
    /// at the `halt`. In a build without the feature `trace` it writes only the head.
    ///
    /// The trace is written inside the kernel's loop. An `out` that stalls, such as a pipe that is
    /// not read, stalls the kernel. Lines that `out` refuses are dropped without an error.
    pub fn trace_to(&mut self, mut out: impl io::Write + 'static) {
        let head = trace::header(self.core.machine.clock_name(), self.core.machine.seed());
        let _ = writeln!(out, "{head}");
        self.observe(Writer::new(out));
    }

    /// Adds `ran=`, `waited=` and `late=` to the lines of the trace. The trace then differs from
    /// run to run.
    pub fn time_the_trace(&mut self) {
        self.core.log.timed = true;
    }

    /// The machine below.
    pub fn machine(&self) -> &M {
        &self.core.machine
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
        if self.services.shutdown.is_closing() {
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
        if let Some(panic) = self.core.main_panic.take() {
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
    /// [`Error::Machine`]; [`Error::Hang`] if a drain or a grace period has no limit and nothing
    /// can happen any more. The later phases still take place.
    ///
    /// # Panics
    ///
    /// If a kernel is running on this thread, for example when a task calls this.
    pub fn shutdown(&mut self) -> Result<(), Error> {
        self.shutdown_because("shutdown")
    }

    fn shutdown_because(&mut self, reason: &str) -> Result<(), Error> {
        if self.services.shutdown.stage == Stage::Halted {
            return Ok(());
        }
        let ended = {
            let _running = Running::enter(&self.core);
            self.shut_down(reason)
        };
        // Threads that wait for an unhandled message learn here that it never will be handled.
        self.drop_messages();
        ended
    }

    /// Closes the wake queue. Its messages are foreign objects and are dropped one by one, because
    /// two panics at once would abort the process.
    fn drop_messages(&mut self) {
        self.core.inbox.queue.close().into_iter().for_each(drop_quietly);
    }

    /// Drops the remaining tasks, with a line for each.
    fn let_go(&mut self) {
        let Kernel { core, services } = self;
        // The gate is in use in a task of another kernel. Then what is posted is dropped.
        let running = core.gate.is_free().then(|| Running::enter(core));
        // An observer may have panicked in the middle of a run.
        core.abort_run();
        core.drop_tasks(services, "its_kernel_is_dropped");
        if running.is_some() {
            core.serve(services);
        }
        services.threads.drop_all(core);
        drop(running);
        core.gate.close(core.shared.epoch);
        self.drop_messages();
    }

    /// Runs turns until main has ended.
    fn run_main(&mut self, main: MainPoll<'_>, site: Site) -> Result<(), Error> {
        let _running = Running::enter(&self.core);
        self.start()?;
        let task = self.core.add_main(site);
        // Posts that were made between two runs go before timers that are due in this run.
        self.core.serve_between_runs(&mut self.services);
        while !self.core.main_ended {
            if let Err(error) = self.turn(main) {
                let seq = emit!(self.core, task, Event::Drop { what: "its_run_failed".into() });
                self.core.end_task(task, End::Dropped, seq);
                return Err(error);
            }
            let Kernel { core, services } = self;
            let is_closing = services.shutdown.is_closing() && !core.main_ended;
            if is_closing && services.shutdown.end_main(core, task) {
                return Err(Error::Overdue);
            }
        }
        self.core.serve(&mut self.services);
        Ok(())
    }

    fn start(&mut self) -> Result<(), Error> {
        let Kernel { core, services } = self;
        services.watchdog.start(core.options.watchdog).map_err(Error::Machine)?;
        services.signals.watch_own(core).map_err(Error::Machine)?;
        core.start(services);
        Ok(())
    }

    /// One turn. After the machine has failed, no new requests are accepted from other threads;
    /// results of jobs and wakes are still handled in a shutdown.
    pub(crate) fn turn(&mut self, main: MainPoll<'_>) -> Result<(), Error> {
        if hangs(&self.core, &self.services.remotes, || self.counters()) {
            return Err(self.hang());
        }
        let Kernel { core, services } = self;
        match core.turn(services, main) {
            Ok(()) => Ok(()),
            Err(Failure::Machine(error)) => {
                services.shutdown.failed = true;
                core.inbox.queue.seal();
                Err(Error::Machine(error))
            }
            Err(Failure::Hang) if self.is_quiescent() => Err(self.hang()),
            Err(Failure::Hang) => Ok(()),
        }
    }

    fn hang(&self) -> Error {
        Error::Hang(self.task_table().to_string().trim_end().to_owned())
    }
}

/// What an owner can see, hook into, and hand to other threads.
impl<M: Machine> Kernel<M> {
    /// The tasks that have not ended, in the order of their numbers: a snapshot.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskView> {
        TaskView::all(&self.core)
    }

    /// The table of the tasks that have not ended: a snapshot. O(tasks + waits).
    #[must_use]
    pub fn task_table(&self) -> TaskTable {
        TaskTable::of(&self.core)
    }

    /// The jobs that have not ended, in the order of their numbers: a snapshot. A job that has a
    /// token, abandoned or not, has held it [since](JobView::since).
    #[must_use]
    pub fn jobs(&self) -> Vec<JobView> {
        self.services.threads.views(&self.core.tasks)
    }

    /// What the kernel holds and has done. O(waits and scopes of this thread).
    #[must_use]
    pub fn counters(&self) -> Counters {
        let Kernel { core, services } = self;
        let tokens = &services.threads.tokens;
        let records = core.gate.records();
        let is_ours = |root: u32| records.scopes[root].epoch == core.shared.epoch;
        let scopes = || records.scopes.iter().filter(|(_, scope)| is_ours(scope.root));
        let is_open = |kind: ScopeKind| !matches!(kind, ScopeKind::Task | ScopeKind::Deadline(_));
        Counters {
            tasks: core.tasks.alive(),
            tickets: records.waits.iter().filter(|(_, it)| is_ours(records.root_of(it))).count(),
            scopes: scopes().filter(|(_, scope)| is_open(scope.kind)).count(),
            timers: core.timers.len() + core.shared.deadlines.armed(),
            deadlines: core.shared.deadlines.alive(),
            registered: core.handles.registered,
            handles: core.handles.known,
            jobs: tokens.jobs.len(),
            queued: tokens.queued(),
            tokens: tokens.in_use,
            tokens_peak: tokens.peak,
            tokens_held: tokens.held,
            abandoned: tokens.abandoned(),
            threads: services.threads.pool.threads(),
            pending: scopes().filter(|(id, it)| it.fired().is_some() && !it.was_taken(*id)).count(),
            turns: core.turn,
            rings: core.inbox.queue.rings(),
            ..core.counts
        }
    }

    /// What could still happen. O(waits and scopes of this thread).
    #[must_use]
    pub fn outstanding(&self) -> Outstanding {
        Outstanding::of(&self.core, &self.counters())
    }

    /// Whether nothing can happen any more: the kernel could wait for ever.
    #[must_use]
    pub fn is_quiescent(&self) -> bool {
        self.outstanding().is_nothing()
    }

    /// Calls `hook` before each trap is dispatched, from now on. What it returns happens to the
    /// task that makes the trap: a trap that blocks ends with the interrupt, and from one that
    /// answers it is pending until the next that blocks. Scopes and spawns count as traps.
    ///
    /// For tests that interrupt a program.
    pub fn before_each_trap(&mut self, hook: impl FnMut(&Trap<'_>) -> Option<Injected> + 'static) {
        self.core.hook.before = Some(Box::new(hook));
        self.core.look(&self.services);
    }

    /// Has `hook` called with the value of each job that ends when nobody waits for it any more,
    /// or whose value is dropped unread: a connection that is to be closed, for example.
    ///
    /// Called inside the kernel's loop, so it must not block. A panic in it is caught. Replaces an
    /// earlier hook.
    ///
    /// An item of [`iterate_in_thread`](traps::iterate_in_thread()) is no such value: it waits for
    /// the next call, or was dropped with its source. Only the panic of an iterator whose source
    /// is gone comes here.
    pub fn on_orphan(&mut self, hook: impl FnMut(Orphan) + 'static) {
        self.services.threads.on_orphan = Some(Box::new(hook));
    }

    /// Calls `hook` with the table of tasks in the turn in which `signal` arrives, whatever the
    /// tasks wait for. From the next run on the signal no longer ends the process.
    ///
    /// The hook is called inside the kernel's loop: it must not block. A panic in it ends nothing.
    /// A task that does not leave the CPU delays it. It is for reports: a kernel that only a hook
    /// could wake ends its run with [`Error::Hang`]. A task that waits for a signal uses
    /// [`traps::signals`](traps::signals()).
    pub fn on_signal(&mut self, signal: Signal, hook: impl FnMut(&TaskTable) + 'static) {
        self.services.signals.add_hook(signal, Box::new(hook));
    }

    /// Calls `hook` with what the watchdog ([`Options::watchdog`]) sees: once when a run has lasted
    /// for its span, again each time that has doubled, and once when the run is over. The same is
    /// a warning in the log, of the target `kernel::sched`.
    ///
    /// Called on the watchdog's thread while the kernel may be stuck, so it must not wait for the
    /// kernel. A kernel that is dropped waits for it. A panic in it is caught.
    pub fn on_stuck(&mut self, hook: impl Fn(&Stuck) + Send + Sync + 'static) {
        self.services.watchdog.set_hook(hook);
    }

    /// A handle to this kernel for other threads. Costs a reference count.
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote::new(self.core.inbox.queue.clone(), self.services.remotes.clone())
    }

    /// Runs what main has left behind until nothing can happen any more, or for at most `limit` of
    /// kernel time; parked tasks that nothing can wake stay. Blocks this thread. Gives whether all
    /// is quiet; false as soon as a shutdown begins. A limit of zero runs one turn, and does not
    /// wait in it.
    ///
    /// A simulated machine that waits for a real thread knows no limit.
    ///
    /// # Errors
    ///
    /// [`Error::Machine`]; [`Error::Shut`] after a shutdown.
    ///
    /// # Panics
    ///
    /// If a kernel runs on this thread, as in its task.
    pub fn run_until_quiescent(&mut self, limit: Duration) -> Result<bool, Error> {
        if self.services.shutdown.is_closing() {
            return Err(Error::Shut);
        }
        let _running = Running::enter(&self.core);
        self.start()?;
        self.core.serve_between_runs(&mut self.services);
        let end = self.core.now + limit;
        self.core.bound = Some(end);
        let mut nobody = |_: &mut Context<'_>| Poll::Pending;
        let (mut ended, mut is_first) = (Ok(()), true);
        while ended.is_ok()
            && !self.services.shutdown.is_closing()
            && !self.is_quiescent()
            && (is_first || self.core.now < end)
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

/// Drops the remaining tasks, newest first, with a line for each, and abandons jobs on threads.
impl<M: Machine> Drop for Kernel<M> {
    fn drop(&mut self) {
        // Runs outside of any task, because a task of another kernel may drop this kernel.
        self.core.gate.aside(|| self.let_go());
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
