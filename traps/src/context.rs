//! The context of a job: all that a job on a worker thread knows of its task.
//!
//! A job runs without a kernel, so it cannot ask one. The kernel makes a [`ThreadContext`] when it
//! admits the job: the deadline of the caller, a clock, and copies of the inherited locals. A
//! worker runs one job in it.
//!
//! Code in a context must not use the gate, except to ask which kernel runs. Normally none runs on
//! the thread of a job. But a job can run a kernel of its own, and a kernel that plays its jobs by
//! script runs them on its own thread. The epoch of the gate tells these kernels apart: a context
//! belongs to the code of its job, and not to the tasks of a kernel inside it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, mem};

use crate::core::gate;
use crate::core::table::TaskRef;
use crate::error::{Error, caught, drop_quietly};
use crate::task::{InheritedValues, inherited_of};
use crate::time::Time;

/// The clock of a kernel, in the form in which its jobs read it.
pub type ThreadClock = dyn Fn() -> Time + Send + Sync;

/// What a job can learn about its caller. Each answer changes once, from no to yes.
#[derive(Debug, Default)]
pub struct Caller {
    is_gone: AtomicBool,
    gone: Tally,
    expired: Tally,
}

impl Caller {
    /// Marks the caller as gone, so that [`ThreadDeadline::is_abandoned`] returns true. Another
    /// thread reads the mark, so nothing that the job does in the meantime is undone.
    pub fn mark_gone(&self) {
        self.is_gone.store(true, Ordering::Release);
    }

    /// Returns the numbers of the job's first question with the answer *yes*: whether the deadline
    /// had passed, and whether the caller had gone. A number is 0 if there was no such question.
    #[must_use]
    pub fn first_yes(&self) -> [u64; 2] {
        [&self.expired, &self.gone].map(|tally| tally.first.load(Ordering::Relaxed))
    }

    /// Sets the numbers of [`first_yes`](Caller::first_yes) for a replay, so that the job gets the
    /// same answers at the same questions.
    pub fn set_first_yes(&self, [expired, gone]: [u64; 2]) {
        self.expired.first.store(expired, Ordering::Relaxed);
        self.gone.first.store(gone, Ordering::Relaxed);
    }
}

/// A count of the questions of a job, so that a replay can give the same answers.
#[derive(Debug, Default)]
struct Tally {
    asked: AtomicU64,
    /// The number of the first question with the answer *yes*, or 0. A replay reads it from the
    /// record.
    first: AtomicU64,
}

impl Tally {
    /// Counts a question, and returns its answer. If `replayed`, the record has the answer. Relaxed
    /// atomics are enough, because only the numbers matter, and no other memory.
    fn answer(&self, is_it: impl FnOnce() -> bool, replayed: bool) -> bool {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let first = self.first.load(Ordering::Relaxed);
        if first == 0 && !replayed && is_it() {
            self.first.store(number, Ordering::Relaxed);
            return true;
        }
        first != 0 && number >= first
    }
}

/// The data that a job takes to its thread: the deadline in force at its call, and the inherited
/// locals of its task.
#[derive(Debug)]
pub struct ThreadContext {
    deadline: ThreadDeadline,
    locals: InheritedValues,
}

impl ThreadContext {
    /// Makes the context for a job of `task`. `until` is the deadline of the caller, or
    /// [`Time::NEVER`].
    #[must_use]
    pub fn new(until: Time, clock: &Arc<ThreadClock>, task: TaskRef) -> ThreadContext {
        let (clock, caller) = (clock.clone(), Arc::default());
        let deadline = ThreadDeadline { until, clock, caller, is_replayed: false };
        ThreadContext { deadline, locals: inherited_of(task) }
    }

    /// Marks the job as one that runs again in a replay. Its clock starts at `since`, the recorded
    /// time at which it got its tokens, and moves in real time.
    pub fn replay(&mut self, since: Time) {
        let begin = Instant::now();
        self.deadline.clock = Arc::new(move || since + begin.elapsed());
        self.deadline.is_replayed = true;
    }

    /// Returns what the job can learn about its caller.
    #[must_use]
    pub fn caller(&self) -> Arc<Caller> {
        self.deadline.caller.clone()
    }

    /// Runs a job in this context, on this thread, and drops the context afterwards.
    ///
    /// # Errors
    ///
    /// Returns the message if the job panics.
    pub fn run<R>(self, job: impl FnOnce() -> R) -> Result<R, String> {
        let entered = EnteredContext { context: self, epoch: gate::epoch() };
        // There can be an outer context: a job can run a kernel, and that kernel can play this job
        // by script.
        let before = CONTEXT.replace(Some(entered));
        let result = caught(job);
        let left = CONTEXT.replace(before);
        drop(left);
        result
    }
}

impl Drop for ThreadContext {
    fn drop(&mut self) {
        // The drop of each value is user code and can panic. Without this, the panic of one would
        // leave the next to a drop while the thread unwinds, and a second panic ends the process.
        mem::take(&mut self.locals).into_iter().for_each(drop_quietly);
    }
}

/// The context of the job on this thread, and the kernel that ran on the thread when the job
/// started.
struct EnteredContext {
    context: ThreadContext,
    epoch: u32,
}

thread_local! {
    static CONTEXT: RefCell<Option<EnteredContext>> = const { RefCell::new(None) };
}

fn with_context<R>(read: impl FnOnce(&EnteredContext) -> Option<R>) -> Option<R> {
    CONTEXT.try_with(|entered| read(entered.borrow().as_ref()?)).ok().flatten()
}

/// Returns whether this thread runs a job now. `false` inside a kernel that the job runs.
///
/// ```
/// use traps::threads::{is_in_job, run_in_thread};
///
/// # testing::run(async {
/// assert!(!is_in_job());
/// assert_eq!(run_in_thread(is_in_job).await, Ok(true));
/// # });
/// ```
#[must_use]
pub fn is_in_job() -> bool {
    with_context(|entered| Some(entered.epoch == gate::epoch())).unwrap_or(false)
}

/// Returns whether this thread runs a job of a replay again. `false` inside a kernel that the job
/// runs.
pub(crate) fn is_in_replayed_job() -> bool {
    let is_it = |entered: &EnteredContext| entered.context.deadline.is_replayed;
    with_context(|entered| Some(is_it(entered) && entered.epoch == gate::epoch())).unwrap_or(false)
}

/// Returns the inherited local values of the job on this thread. Returns `None` outside a job.
pub(crate) fn inherited_of_job() -> Option<InheritedValues> {
    with_context(|entered| (entered.epoch == gate::epoch()).then(|| entered.context.locals.clone()))
}

/// Returns the deadline of the job on this thread. Returns `None` outside a job.
///
/// ```
/// use traps::threads::{run_in_thread, thread_deadline};
///
/// # testing::run(async {
/// let found = run_in_thread(|| {
///     let deadline = thread_deadline().expect("this is a job");
///     (1..u64::MAX).take_while(|_| deadline.check().is_ok()).find(|n| n * n == 1_522_756)
/// });
/// assert_eq!(found.await?, Some(1234));
/// # Ok::<(), traps::Error>(())
/// # }).output.unwrap();
/// ```
#[must_use]
pub fn thread_deadline() -> Option<ThreadDeadline> {
    with_context(|entered| Some(entered.context.deadline.clone()))
}

/// The deadline of a job's caller, and whether the caller still waits.
///
/// It is the deadline in force at the call of `run_in_thread`, like that of
/// [`current_deadline`](crate::current_deadline) there. It does not end the job: the job must check
/// it from time to time. A clone costs two counts of references. Can be sent to other threads.
///
/// ```
/// # use std::time::Duration;
/// use traps::threads::{run_in_thread, thread_deadline};
/// use traps::timeout_after;
///
/// # testing::run(async {
/// let hour = Duration::from_secs(3600);
/// let left = || thread_deadline().unwrap().remaining();
/// assert_eq!(run_in_thread(left).await?, None); // no deadline is in force
/// assert!(timeout_after(hour, run_in_thread(left)).await?.unwrap() <= hour);
/// # Ok::<(), traps::Error>(())
/// # }).output.unwrap();
/// ```
#[derive(Clone)]
pub struct ThreadDeadline {
    until: Time,
    clock: Arc<ThreadClock>,
    caller: Arc<Caller>,
    /// Whether a record is played, and the job runs again.
    is_replayed: bool,
}

impl ThreadDeadline {
    /// Returns the time for which the caller will still wait, on the clock of its kernel. Returns
    /// `None` if it has no deadline, and zero if the deadline has passed. Reads a clock, which
    /// takes tens of nanoseconds.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        if self.until == Time::NEVER {
            return None;
        }
        let left = self.until.since((self.clock)());
        let is_expired = self.caller.expired.answer(|| left.is_zero(), self.is_replayed);
        // In a replay the clock can be slower or faster than the recorded one. The answer of the
        // record decides, so the duration must not be zero unless the record says so.
        Some(if is_expired { Duration::ZERO } else { left.max(Duration::from_micros(1)) })
    }

    /// Returns whether the caller's deadline has passed.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.remaining() == Some(Duration::ZERO)
    }

    /// Returns whether the caller no longer waits for the job: its deadline or a cancellation ended
    /// its wait, or the caller is gone. Costs two loads and an atomic addition.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        let is_gone = || self.caller.is_gone.load(Ordering::Acquire);
        self.caller.gone.answer(is_gone, self.is_replayed)
    }

    /// Returns an error if the caller will not use the result, for use with `?`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Gone`] if the deadline has passed or the caller no longer waits. Costs what
    /// [`remaining`](ThreadDeadline::remaining) and [`is_abandoned`](ThreadDeadline::is_abandoned)
    /// cost together, so call it once per piece of work of a microsecond or more.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kernel::Sim;
    /// use traps::threads::{run_in_thread, thread_deadline};
    /// use traps::{Error, timeout_after};
    ///
    /// let second = Duration::from_secs(1);
    /// let sim = Sim::new().jobs_take(2 * second); // on the virtual clock
    /// # testing::Setup::new().sim(sim).run(async {
    /// // The caller waits for one second, so at its end the job works in vain.
    /// let (sender, ended) = std::sync::mpsc::channel();
    /// let job = move || sender.send(thread_deadline().unwrap().check()).unwrap();
    /// assert!(timeout_after(second, run_in_thread(job)).await.is_err());
    /// traps::sleep(2 * second).await?;
    /// assert_eq!(ended.try_recv().unwrap(), Err(Error::Gone));
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    pub fn check(&self) -> Result<(), Error> {
        if self.is_abandoned() || self.is_expired() { Err(Error::Gone) } else { Ok(()) }
    }
}

impl fmt::Debug for ThreadDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadDeadline").field("until", &self.until).finish_non_exhaustive()
    }
}
