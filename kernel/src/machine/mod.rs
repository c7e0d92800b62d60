//! The machine below a kernel: a clock, and a wait for arrivals.
//!
//! `Real` is the operating system, through mio. [`Sim`] is a clock that jumps, and a world that
//! follows a script. `Taped` is the operating system with a tape. The kernel above has the same
//! code for all three. [`Sim`] exists everywhere; the other two exist on Linux, macOS and FreeBSD.
//!
//! A machine also gets the jobs, so that a script can run a job instead of a thread.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use traps::internal::ThreadContext;
use traps::internal::protocol::Work;
use traps::internal::table::{Descriptor, TaskIndex};
use traps::{Signal, Time};

#[cfg(unix)]
pub use crate::machine::real::Real;
pub use crate::machine::sim::{Sim, SimClock};
#[cfg(unix)]
pub use crate::machine::taped::Taped;
#[cfg(unix)]
pub(crate) use crate::machine::taped::command;

#[cfg(unix)]
mod real;
#[cfg(unix)]
mod signals;
mod sim;
#[cfg(unix)]
mod sys;
#[cfg(unix)]
mod taped;
#[cfg(unix)]
pub(crate) use signals::number;
#[cfg(unix)]
pub(crate) use sys::survive_file_limit;
pub(crate) use sys::{CpuClock, keep_statuses};

#[cfg(all(unix, not(any(target_os = "linux", target_os = "freebsd", target_vendor = "apple"))))]
compile_error!("expected Linux, macOS or FreeBSD: the machine `Real` is not ported to this Unix");

#[cfg(not(unix))]
mod sys {
    //! Stand-ins for a system that is no Unix.

    use std::io;
    use std::time::Duration;

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct CpuClock;

    impl CpuClock {
        /// Returns `None`: a report of the watchdog then has no CPU time.
        pub(crate) fn of_this_thread() -> Option<CpuClock> {
            None
        }

        pub(crate) fn read(self) -> Option<Duration> {
            None
        }
    }

    /// Does nothing, because this system has no `SIGCHLD`.
    pub(crate) fn keep_statuses() -> io::Result<()> {
        Ok(())
    }
}

/// A bell that ends the machine's current wait, or its next wait if it is not waiting.
pub trait Bell: Send + Sync {
    /// Rings the bell, from any thread. Never blocks and never fails. Costs a system call at most;
    /// if the bell is ringing already, it can do nothing.
    fn ring(&self);
}

/// The limit of a wait of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitLimit {
    /// A wait that returns at once, with the arrivals so far.
    Now,
    /// A wait that lasts until an arrival.
    Arrival {
        /// The point at which the wait ends at the latest.
        by: Option<Time>,
        /// Whether something outside may still ring: a live thread, or the object of an external
        /// wait.
        outside: bool,
    },
}

/// The result of a wait of the machine.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// The descriptors that look ready, in the order of their arrival.
    pub io: Vec<IoEvent>,
    /// Whether the bell was rung.
    pub bell: bool,
    /// The signals that have arrived, ordered by number.
    pub signals: Vec<Signal>,
    /// Whether nothing can arrive any more, so that the wait would never have ended.
    pub hang: bool,
}

impl Arrivals {
    /// Returns whether nothing has arrived, so that only the clock can have ended the wait.
    pub(crate) fn are_none(&self) -> bool {
        self.io.is_empty() && self.signals.is_empty() && !self.bell && !self.hang
    }
}

/// A descriptor that looks ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoEvent {
    /// The token that was given when the descriptor was registered.
    pub token: u64,
    /// Whether there are bytes to read, or the end of the stream.
    pub readable: bool,
    /// Whether there is room to write, or an error to fetch.
    pub writable: bool,
    /// Whether the peer has closed its side, or there is an error. The descriptor stays readable,
    /// usually forever.
    pub closed: bool,
    /// Whether there is urgent data. A read stops short in front of it.
    pub urgent: bool,
}

/// The machine below a kernel, for code that is generic over it.
///
/// This trait is sealed: only [`Sim`] and, on Unix, `Real` and `Taped` implement it.
///
/// ```
/// use kernel::{Kernel, Machine, Sim};
///
/// fn answer<M: Machine>(kernel: &mut Kernel<M>) -> u32 {
///     kernel.run(async { 42 }).unwrap()
/// }
/// assert_eq!(answer(&mut Kernel::new(Sim::new())), 42);
/// ```
pub trait Machine: sealed::Driver {}

impl<M: sealed::Driver> Machine for M {}

pub(crate) mod sealed {
    use super::*;

    pub trait Driver {
        /// Whether the machine has a tape.
        const IS_TAPED: bool = false;

        /// Returns `real` or `virtual`, for the first line of a trace.
        fn clock_name(&self) -> &'static str;

        /// Returns the seed of random choices, or 0 if there are none.
        fn seed(&self) -> u64 {
            0
        }

        /// Returns the machine's own tick of the deadline table, used if the owner sets none.
        fn tick(&self) -> Option<Duration> {
            None
        }

        /// Reads the clock, which never goes back.
        fn now(&mut self) -> Time;

        /// Reads the cheapest clock, in nanoseconds since an arbitrary start. On [`Real`] it moves
        /// in steps of a few milliseconds.
        fn mark(&mut self) -> u64;

        /// Reads the CPU time that this thread has used. Returns `None` on a machine with virtual
        /// time. Costs a system call.
        fn cpu(&mut self) -> Option<Duration> {
            None
        }

        /// Returns a function that reads the time of day.
        fn wall_clock(&self) -> Box<dyn Fn() -> SystemTime>;

        /// Waits for arrivals, and appends them to `arrivals`.
        fn wait(&mut self, until: WaitLimit, arrivals: &mut Arrivals) -> io::Result<()>;

        /// Reorders the ready tasks of a turn. Only an explorer does so, to find programs that
        /// depend on an order; otherwise tasks run in the order in which they became ready.
        fn order(&mut self, _: &mut [TaskIndex]) {}

        /// Makes `wait` report the descriptor, for both directions, once per change (edge).
        fn register(&mut self, descriptor: Descriptor, token: u64) -> io::Result<()>;

        /// Ends the registration of a descriptor.
        fn deregister(&mut self, descriptor: Descriptor) -> io::Result<()>;

        /// Returns whether a descriptor that was reported as closed still has its end, or bytes to
        /// read.
        fn is_readable(&mut self, _: Descriptor) -> bool {
            true
        }

        /// Forgets a descriptor that was closed. The close has ended its registration, so no system
        /// call is needed.
        fn forget(&mut self, _: Descriptor) {}

        /// Returns the bell, which ends the current or next `wait` from any thread.
        fn bell(&self) -> Arc<dyn Bell>;

        /// Makes `wait` report the signal, instead of its default action.
        fn watch_signal(&mut self, signal: Signal) -> io::Result<()>;

        /// Returns a function that reads the clock, for jobs on any thread.
        fn thread_clock(&self) -> Box<dyn Fn() -> Time + Send + Sync>;

        /// Hands a job to the script, which runs the job and delivers it later. Returns the job if
        /// a thread must run it.
        fn play_job(
            &mut self,
            _: u64,
            _: &dyn Fn() -> JobView,
            parcel: Parcel,
            _: &Deliver,
        ) -> Option<Parcel> {
            Some(parcel)
        }

        /// Takes back the jobs that a script has not run yet.
        fn take_jobs(&mut self) -> Vec<(u64, Parcel)> {
            Vec::new()
        }

        /// Returns the number of steps that remain in a script, not counting jobs.
        fn scripted(&self) -> usize {
            0
        }

        /// Returns whether descriptors can end a wait.
        fn has_io(&self) -> bool;
    }
}

/// A job in the form in which a worker or a script runs it.
pub struct Parcel {
    pub work: Arc<dyn Work>,
    pub context: ThreadContext,
}

impl Parcel {
    /// Runs the job. Its panic is caught and kept for its caller.
    pub fn run(self) {
        let Parcel { work, context } = self;
        // `Work::run` catches the panic of its closure. A panic that comes through would end the
        // worker, and the job would keep its token forever.
        let _ = context.run(|| work.run());
    }
}

/// A function that reports the end of a job, from any thread. Must not block or panic.
pub type Deliver = Arc<dyn Fn(u64) + Send + Sync>;

/// A job as the kernel's owner sees it.
///
/// ```
/// use std::time::Duration;
/// use kernel::{JobView, Kernel, Sim};
///
/// // The first job takes a second, and each other job a minute.
/// let span = |job: &JobView| Some(Duration::from_secs(if job.number == 1 { 1 } else { 60 }));
/// let mut kernel = Kernel::new(Sim::new().job_spans(span));
/// let took = kernel.run(async {
///     traps::run_in_thread(|| ()).await?;
///     Ok::<_, traps::Error>(traps::clock().await)
/// });
/// assert_eq!(took.unwrap().unwrap().as_micros(), 1_000_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobView {
    /// The number of the job, `o3` in the log.
    pub number: u64,
    /// The state of the job: `queued`, `running`, or `abandoned` (the caller has stopped waiting).
    pub state: &'static str,
    /// The task that asked for the job.
    pub task: u64,
    /// The name of the task that asked for the job.
    pub name: String,
    /// The time at which the job was queued or, once it runs, got its tokens.
    pub since: Time,
    /// The location of the call that asked for the job, `file:line`.
    pub site: String,
    /// The name of the job's limiter, if the job has one.
    pub limiter: Option<&'static str>,
}
