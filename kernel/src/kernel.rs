//! The kernel as its owner sees it: build, run, shut down, observe.

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::resume_unwind;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use traps::SignalSet;
use traps::gate::Gate;
use traps::protocol::Filed;

use crate::log::{Activation, Log};
use crate::machine::{Arrivals, Deliver, Machine, Real};
use crate::registrations::{Policy, Registrations};
use crate::scopes::Scopes;
use crate::tasks::{NONE, State, Tasks};
use crate::threads::Pool;
use crate::timers::{Due, TimeQueue, TimerId};
use crate::trace::{self, Event, Line};
use crate::turn::drop_quietly;
use crate::waits::{Wait, Waits};
use crate::wake::WakeQueue;
use crate::waker::{Message, SpareWaker};

/// How a kernel behaves. All of it has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// When descriptors are unregistered.
    pub policy: Policy,
    /// How often the far deadlines are looked through at most. 300 ms; at least 10 ms.
    pub tick: Duration,
    /// Operations that a task may do before it gives way. 128.
    pub budget: u32,
    /// How long clean-up may take at shutdown, in all. 5 s.
    pub grace: Duration,
    /// Worker threads at most. 64.
    pub threads: usize,
    /// How long an idle worker thread stays. 10 s.
    pub idle: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            policy: Policy::Lazy,
            tick: Duration::from_millis(300),
            budget: 128,
            grace: Duration::from_secs(5),
            threads: 64,
            idle: Duration::from_secs(10),
        }
    }
}

impl Options {
    /// The defaults.
    #[must_use]
    pub fn new() -> Options {
        Options::default()
    }

    /// With another policy.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Options {
        self.policy = policy;
        self
    }

    /// With another tick; less than 10 ms becomes 10 ms.
    #[must_use]
    pub fn tick(mut self, tick: Duration) -> Options {
        self.tick = tick.max(Duration::from_millis(10));
        self
    }

    /// With another budget; 0 becomes 1.
    #[must_use]
    pub fn budget(mut self, budget: u32) -> Options {
        self.budget = budget.max(1);
        self
    }

    /// With another grace.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Options {
        self.grace = grace;
        self
    }

    /// With another number of worker threads; 0 becomes 1.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Options {
        self.threads = threads.max(1);
        self
    }
}

/// Why a kernel stopped without main's output.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The machine below failed; the kernel cannot go on.
    Machine(io::Error),
    /// Every task is blocked and nothing is left that could wake one: the report names each task
    /// and the traps that it is parked in. Only on [`Sim`](crate::Sim).
    Hang(String),
    /// The kernel was shut down, or it failed before.
    Shut,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Machine(error) => write!(f, "the machine below the kernel failed: {error}"),
            Error::Hang(report) => write!(f, "every task is blocked for ever:\n{report}"),
            Error::Shut => f.write_str("the kernel was shut down and does not run again"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Machine(error) => Some(error),
            Error::Hang(_) | Error::Shut => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        match error {
            Error::Machine(error) => error,
            other => io::Error::other(other),
        }
    }
}

/// What a kernel holds now, and what it has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Tasks that have not ended (the kernel's own not counted).
    pub tasks: usize,
    /// Tickets in use: filed, parked, or answered and not read.
    pub tickets: usize,
    /// Open scopes.
    pub scopes: usize,
    /// Timers that are set.
    pub timers: usize,
    /// Descriptors that are registered with the poller.
    pub registered: usize,
    /// Handles that are open and were waited for.
    pub handles: usize,
    /// Jobs that are queued, run, or were abandoned and still run.
    pub jobs: usize,
    /// Jobs that wait for a thread.
    pub queued: usize,
    /// Worker threads that live, idle ones too.
    pub threads: usize,
    /// Interrupts that wait for a trap.
    pub pending: usize,
    /// Turns so far.
    pub turns: u64,
    /// Waits on the machine so far.
    pub polls: u64,
    /// Registrations made with the poller so far (`EPOLL_CTL_ADD`).
    pub registers: u64,
    /// Registrations taken back so far (`EPOLL_CTL_DEL`; a close that ends one is not counted).
    pub unregisters: u64,
    /// Traps that were answered or parked so far.
    pub traps: u64,
    /// Times that the bell was rung so far.
    pub rings: u64,
    /// Scans of the far deadlines so far.
    pub scans: u64,
}

/// A task as a reader of the task table sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskView {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Who spawned it; none for main.
    pub parent: Option<u64>,
    /// `ready`, `running` or `parked`.
    pub state: &'static str,
    /// How often it had the CPU.
    pub cycles: u64,
    /// Where it was spawned, `file:line`.
    pub spawned_at: Option<String>,
    /// The traps that it is parked in; none if it waits on a waker alone.
    pub parked: Vec<ParkedView>,
}

/// A trap that a task is parked in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParkedView {
    /// The ticket's number in the log.
    pub ticket: u64,
    /// What it waits for, in the words of the log.
    pub trap: String,
    /// Where it was made, `file:line`.
    pub site: String,
}

/// `task 3 child: parked in sleep at examples/hello.rs:14`.
impl fmt::Display for TaskView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} {}: {}", self.id, self.name, self.state)?;
        if self.state == "parked" && self.parked.is_empty() {
            f.write_str(" on a waker alone")?;
        }
        for (place, parked) in self.parked.iter().enumerate() {
            let before = if place == 0 { " in" } else { "," };
            write!(f, "{before} {} at {}", parked.trap, parked.site)?;
        }
        Ok(())
    }
}

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
    pub(crate) registrations: Registrations,
    pub(crate) ready: std::collections::VecDeque<u32>,
    pub(crate) wakes: Arc<WakeQueue<Message>>,
    pub(crate) deliver: Deliver,
    pub(crate) pool: Pool,
    pub(crate) jobs: Jobs,
    pub(crate) signals: Signals,
    pub(crate) spare: Option<SpareWaker>,
    pub(crate) wakeup: Wakeup,
    pub(crate) scratch: Scratch,
    pub(crate) counts: Counts,
    pub(crate) grace: Option<TimerId>,
    pub(crate) grace_over: bool,
    /// The line that began the shutdown.
    pub(crate) phase: trace::Seq,
    /// A foreign wait that something outside will wake.
    pub(crate) external: usize,
    /// The task that runs now, or ran last.
    pub(crate) running: Option<u32>,
    pub(crate) skipped: u32,
    pub(crate) queues: u64,
    pub(crate) main_ended: bool,
    /// The message of a panic in main, kept until the run ends.
    pub(crate) main_panic: Option<Box<dyn std::any::Any + Send>>,
    pub(crate) shut: bool,
}

/// The kernel's own task, number 1.
#[derive(Default)]
pub(crate) struct Wakeup {
    /// It ran once, and waits for the bell.
    pub(crate) parked: bool,
    pub(crate) seq: trace::Seq,
}

/// Jobs that were handed to threads.
#[derive(Default)]
pub(crate) struct Jobs {
    pub(crate) last: u64,
    /// Not back yet, in order: the ticket that waits, `None` once it was abandoned; and whether a
    /// real thread has it.
    pub(crate) live: Vec<(u64, Option<u32>, bool)>,
}

#[derive(Default)]
pub(crate) struct Signals {
    pub(crate) watched: SignalSet,
    /// Arrived while nobody waited.
    pub(crate) kept: SignalSet,
    /// Tickets that wait.
    pub(crate) waiting: Vec<u32>,
}

/// Buffers that are used again every turn, so that no turn allocates.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) inbox: Vec<Filed>,
    pub(crate) arrivals: Arrivals,
    pub(crate) due: Vec<Due>,
    pub(crate) messages: Vec<Message>,
    /// Tickets to be completed when the task that runs has left the CPU.
    pub(crate) yielded: Vec<u32>,
    /// For `run` lines: what was answered, by task.
    pub(crate) answered: Vec<(u32, trace::Answered<'static>)>,
    /// Interrupts that were delivered and not read: task, ticket, source.
    pub(crate) delivered: Vec<(u32, traps::protocol::Ticket, crate::scopes::Source)>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) polls: u64,
    pub(crate) registers: u64,
    pub(crate) unregisters: u64,
    pub(crate) traps: u64,
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
        let gate = Gate::of_this_thread();
        let epoch = gate.open();
        let wakes = Arc::new(WakeQueue::new(machine.bell()));
        let queue = wakes.clone();
        let deliver: Deliver = Arc::new(move |done| queue.push(Message::Done(done)));
        Kernel {
            gate,
            epoch,
            log: Log::default(),
            tasks: Tasks::new(epoch),
            waits: Waits::default(),
            scopes: Scopes::new(epoch),
            timers: TimeQueue::new(options.tick),
            registrations: Registrations::default(),
            ready: std::collections::VecDeque::new(),
            pool: Pool::new(options.threads, options.idle, deliver.clone()),
            deliver,
            jobs: Jobs::default(),
            signals: Signals::default(),
            spare: Some(SpareWaker::new(&wakes)),
            wakes,
            wakeup: Wakeup::default(),
            scratch: Scratch::default(),
            counts: Counts::default(),
            grace: None,
            grace_over: false,
            phase: 0,
            external: 0,
            running: None,
            skipped: 0,
            queues: 0,
            main_ended: false,
            main_panic: None,
            shut: false,
            machine,
            options,
        }
    }

    /// Lets `activation` see every event from now on.
    pub fn observe(&mut self, activation: impl Activation + 'static) {
        self.log.add(Box::new(activation));
    }

    /// Writes the stable trace to `out`, head and all, flushed after every line of consequence.
    /// What `out` refuses is not written and not reported.
    pub fn trace_to(&mut self, mut out: impl io::Write + 'static) {
        let head = trace::header(self.machine.clock_name(), self.machine.seed());
        let _ = writeln!(out, "{head}");
        self.observe(move |line: &Line<'_>| {
            let _ = writeln!(out, "{line}");
            if matches!(line.event, Event::Halt { .. } | Event::Panic { .. }) {
                let _ = out.flush();
            }
        });
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
    /// # Errors
    ///
    /// [`Error`]: the machine failed, everything hangs, or the kernel was shut down.
    ///
    /// # Panics
    ///
    /// With main's panic, after a shutdown; and if a kernel runs on this thread already.
    #[track_caller]
    pub fn run<F: Future>(&mut self, main: F) -> Result<F::Output, Error> {
        if self.shut {
            return Err(Error::Shut);
        }
        let site = std::panic::Location::caller();
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
            let _ = self.shutdown();
            resume_unwind(panic);
        }
        ended?;
        Ok(output.expect("a run ends when main has ended"))
    }

    /// Cancels all tasks, newest first; waits for their clean-up, in all no longer than the grace;
    /// then drops what is left, newest first. The kernel does not run again.
    ///
    /// # Errors
    ///
    /// [`Error::Machine`]; what is left is dropped all the same.
    pub fn shutdown(&mut self) -> Result<(), Error> {
        if self.shut {
            return Ok(());
        }
        self.shut_down()
    }

    /// The tasks that have not ended, in the order of their numbers: a snapshot.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskView> {
        let mut indices = self.tasks.newest_first();
        indices.reverse();
        indices.into_iter().map(|index| self.view(index)).collect()
    }

    fn view(&self, index: u32) -> TaskView {
        let task = self.tasks.get(index);
        let parked = self.waits.of(&self.tasks, index).into_iter().map(|ticket| {
            let entry = self.waits.get(ticket).expect("a list holds parked tickets");
            let site = format!("{}:{}", entry.site.file(), entry.site.line());
            ParkedView { ticket: entry.number, trap: self.shown_wait(entry), site }
        });
        TaskView {
            id: task.id.get(),
            name: self.tasks.label(index).1.to_owned(),
            parent: (task.parent != 0).then_some(task.parent),
            state: match task.state {
                State::Ready => "ready",
                State::Running => "running",
                State::Parked => "parked",
                State::Ended => "ended",
            },
            cycles: task.cycles,
            spawned_at: task.site.map(|site| format!("{}:{}", site.file(), site.line())),
            parked: parked.collect(),
        }
    }

    /// What the kernel holds and has done.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            tasks: self.tasks.alive,
            tickets: self.gate.tickets(self.epoch),
            scopes: self.scopes.len(),
            timers: self.timers.len(),
            registered: self.registrations.registered,
            handles: self.registrations.known,
            jobs: self.jobs.live.len(),
            queued: self.pool.queued(),
            threads: self.pool.threads(),
            pending: self.scopes.pending_count(),
            turns: self.log.turn,
            polls: self.counts.polls,
            registers: self.counts.registers,
            unregisters: self.counts.unregisters,
            traps: self.counts.traps,
            rings: self.wakes.rings(),
            scans: self.timers.counters().scans,
        }
    }
}

impl<M: Machine> fmt::Debug for Kernel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

impl<M: Machine> Drop for Kernel<M> {
    fn drop(&mut self) {
        for task in self.tasks.drain() {
            drop_quietly(task);
        }
        // A queue may live on, and be waited on in another kernel.
        for entry in self.waits.take_all() {
            if let Wait::Queue(queue) = entry.wait {
                queue.head.set(NONE);
                queue.tail.set(NONE);
                queue.waiting.set(0);
                queue.home.set(0);
            }
        }
        self.gate.close(self.epoch);
    }
}

/// Runs `main` on the operating system with the default options, then shuts down.
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
    let output = kernel.run(main)?;
    kernel.shutdown()?;
    Ok(output)
}

/// Main's future as the loop polls it.
pub(crate) type MainPoll<'a> = &'a mut dyn FnMut(&mut Context<'_>) -> Poll<()>;
