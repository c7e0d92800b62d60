//! What a job knows of the task that asked for it, while it runs on a thread of its own.
//!
//! The kernel makes it, and a worker runs one job in it. Of the gate it may ask only which kernel
//! runs: where a job runs there is none, or one that plays it by script.

use std::cell::RefCell;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::panics::{caught, drop_quietly};
use crate::core::gate;
use crate::core::names::TaskRef;
use crate::error::Error;
use crate::task::values::{Crossing, crossing};
use crate::time::Time;

/// The clock of a kernel, as its jobs read it.
pub type ThreadClock = dyn Fn() -> Time + Send + Sync;

/// What a job takes along: the deadline in force where it was asked for, and the inherited locals
/// of the task that asked.
#[derive(Debug)]
pub struct ThreadContext {
    deadline: ThreadDeadline,
    locals: Crossing,
}

impl ThreadContext {
    /// For a job of that task, whose caller has this deadline; [`Time::NEVER`] for none.
    #[must_use]
    pub fn new(until: Time, clock: &Arc<ThreadClock>, task: TaskRef) -> ThreadContext {
        let deadline = ThreadDeadline { until, clock: clock.clone(), abandoned: Arc::default() };
        ThreadContext { deadline, locals: crossing(task) }
    }

    /// To be set when the caller is answered without the job, or is gone.
    #[must_use]
    pub fn abandoned(&self) -> Arc<AtomicBool> {
        self.deadline.abandoned.clone()
    }

    /// Runs a job in it, on this thread, and leaves nothing of it behind.
    ///
    /// # Errors
    ///
    /// The message of the job's panic.
    pub fn run<R>(self, job: impl FnOnce() -> R) -> Result<R, String> {
        let entered = Entered { context: self, epoch: gate::epoch() };
        // There is one already if a kernel that runs in a job plays this one by script.
        let before = CONTEXT.replace(Some(entered));
        let result = caught(job);
        let left = CONTEXT.replace(before);
        drop(left);
        result
    }
}

impl Drop for ThreadContext {
    fn drop(&mut self) {
        // Values of locals are foreign, and each may panic.
        mem::take(&mut self.locals).into_iter().for_each(drop_quietly);
    }
}

/// What a thread is in, and which kernel ran on it then.
struct Entered {
    context: ThreadContext,
    epoch: u32,
}

thread_local! {
    static CONTEXT: RefCell<Option<Entered>> = const { RefCell::new(None) };
}

fn look<R>(read: impl FnOnce(&Entered) -> Option<R>) -> Option<R> {
    CONTEXT.try_with(|entered| read(entered.borrow().as_ref()?)).ok().flatten()
}

/// Whether this thread is in a job now, and not in a kernel that the job runs.
#[must_use]
pub fn is_in_job() -> bool {
    look(|entered| Some(entered.epoch == gate::epoch())).unwrap_or(false)
}

/// The values of inherited locals that the job on this thread has; `None` outside a job.
pub(crate) fn crossed() -> Option<Crossing> {
    look(|entered| (entered.epoch == gate::epoch()).then(|| entered.context.locals.clone()))
}

/// The deadline of the job that runs on this thread; `None` outside a job.
///
/// ```no_run
/// use traps::threads::{run_in_thread, thread_deadline};
///
/// # async fn example() -> Result<(), traps::Error> {
/// let found = run_in_thread(|| {
///     let deadline = thread_deadline().expect("this is a job");
///     (1..u64::MAX).take_while(|_| deadline.check().is_ok()).find(|n| n * n == 1_522_756)
/// });
/// assert_eq!(found.await?, Some(1234));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn thread_deadline() -> Option<ThreadDeadline> {
    look(|entered| Some(entered.context.deadline.clone()))
}

/// Tells a job how long its caller will wait for it, and whether it still does.
///
/// It is the deadline in force where `run_in_thread` was called, as
/// [`current_deadline`](crate::current_deadline) gives it there. It ends no job: a job that is to
/// stop looks at it now and then. Cheap to clone; may be taken to other threads.
#[derive(Clone)]
pub struct ThreadDeadline {
    until: Time,
    clock: Arc<ThreadClock>,
    abandoned: Arc<AtomicBool>,
}

impl ThreadDeadline {
    /// How long the caller will still wait, on its kernel's clock; `None` if it has no deadline,
    /// zero if that has passed. Reads a clock: tens of nanoseconds.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        (self.until != Time::NEVER).then(|| self.until.since((self.clock)()))
    }

    /// Whether the caller's deadline has passed.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.remaining() == Some(Duration::ZERO)
    }

    /// Whether the caller was answered without the job's value, by its deadline or a cancellation,
    /// or is gone: nobody waits for it any more. One load.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    /// Both questions as one, for a `?`.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`] if the deadline has passed or the caller has given up.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_abandoned() || self.is_expired() { Err(Error::Gone) } else { Ok(()) }
    }
}

impl fmt::Debug for ThreadDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadDeadline").field("until", &self.until).finish_non_exhaustive()
    }
}
