//! What a job knows of the task that asked for it, while it runs on a thread of its own.
//!
//! The kernel makes it, a worker enters it for one job and leaves it behind. Of the gate it may ask
//! only which kernel runs: where a job runs there is none, or one that plays it by script.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::gate;
use crate::time::Time;

/// A value that crosses over, and which static it belongs to.
pub(crate) type Crossing = (usize, Arc<dyn Any + Send + Sync>);

/// What all jobs of a kernel share with it: its clock, and which of them are waited for.
pub struct Outlook {
    clock: Box<dyn Fn() -> Time + Send + Sync>,
    /// By token: the job that has it, or had it last; 0 where that was abandoned.
    waited_for: Box<[AtomicU64]>,
}

impl Outlook {
    /// For so many tokens, read by this clock.
    #[must_use]
    pub fn new(tokens: usize, clock: Box<dyn Fn() -> Time + Send + Sync>) -> Outlook {
        Outlook { clock, waited_for: (0..tokens).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The caller of the job that has this token was answered without it.
    pub fn abandon(&self, token: u32) {
        self.waited_for[token as usize].store(0, Ordering::Release);
    }

    /// The kernel is gone, and all who waited.
    pub fn abandon_all(&self) {
        self.waited_for.iter().for_each(|job| job.store(0, Ordering::Release));
    }
}

impl fmt::Debug for Outlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outlook").field("tokens", &self.waited_for.len()).finish_non_exhaustive()
    }
}

/// What a job takes along: the deadline in force where it was asked for, and the inherited locals
/// of the task that asked (rows A15, R2).
pub struct ThreadContext {
    deadline: ThreadDeadline,
    locals: Vec<Crossing>,
}

impl ThreadContext {
    /// For a job whose caller has this deadline; [`Time::NEVER`] for none.
    #[must_use]
    pub fn new(job: u64, until: Time, outlook: &Arc<Outlook>, locals: Vec<Crossing>) -> Self {
        let deadline = ThreadDeadline { job, token: 0, until, outlook: outlook.clone() };
        ThreadContext { deadline, locals }
    }

    /// The job got this token.
    pub fn set_token(&mut self, token: u32) {
        let ThreadDeadline { job, outlook, .. } = &self.deadline;
        outlook.waited_for[token as usize].store(*job, Ordering::Release);
        self.deadline.token = token;
    }

    /// Runs a job in it, on this thread. Nothing of it is left behind, not even by a panic
    /// (row R7).
    pub fn run<R>(self, job: impl FnOnce() -> R) -> R {
        let _within = Within::enter(self);
        job()
    }
}

impl Drop for ThreadContext {
    fn drop(&mut self) {
        // Where its job panics, another panic would end the process.
        gate::drop_each(mem::take(&mut self.locals));
    }
}

impl fmt::Debug for ThreadContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadContext").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

thread_local! {
    static CONTEXT: RefCell<Option<Entered>> = const { RefCell::new(None) };
}

/// What a thread is in, and which kernel ran on it then.
struct Entered {
    context: ThreadContext,
    epoch: u32,
}

/// While it lives, this thread is in a job. Holds what was there before: that of a job in which a
/// kernel plays this one, or nothing.
struct Within(Option<Entered>);

impl Within {
    fn enter(context: ThreadContext) -> Within {
        Within(CONTEXT.replace(Some(Entered { context, epoch: gate::epoch() })))
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        // Dropped when the borrow is over: values of locals are foreign.
        let left = CONTEXT.replace(self.0.take());
        drop(left);
    }
}

/// Whether this thread is in a job now, and not in a kernel that the job runs.
pub(crate) fn is_in_job() -> bool {
    let is_here = |entered: &Entered| entered.epoch == gate::epoch();
    CONTEXT.try_with(|entered| entered.borrow().as_ref().is_some_and(is_here)).unwrap_or(false)
}

/// The value that the job on this thread has of an inherited local; `None` outside a job too.
pub(crate) fn crossed(key: usize) -> Option<Arc<dyn Any + Send + Sync>> {
    let find = |entered: &RefCell<Option<Entered>>| {
        let entered = entered.borrow();
        let found = entered.as_ref()?.context.locals.iter().find(|(known, _)| *known == key);
        found.map(|(_, value)| value.clone())
    };
    CONTEXT.try_with(find).ok().flatten()
}

/// The deadline of the job that runs on this thread; `None` outside a job.
///
/// ```no_run
/// use traps::threads::{run_in_thread, thread_deadline};
///
/// # async fn example() -> Result<(), traps::threads::ThreadError> {
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
    let deadline = |entered: &RefCell<Option<Entered>>| {
        entered.borrow().as_ref().map(|entered| entered.context.deadline.clone())
    };
    CONTEXT.try_with(deadline).ok().flatten()
}

/// Tells a job how long its caller will wait for it, and whether it still does (row A15).
///
/// It is the deadline in force where `run_in_thread` was called, as
/// [`current_deadline`](crate::current_deadline) gives it there. It ends no job: a job that is to
/// stop looks at it now and then. Cheap to clone; may be taken to other threads.
#[derive(Clone)]
pub struct ThreadDeadline {
    job: u64,
    token: u32,
    until: Time,
    outlook: Arc<Outlook>,
}

impl ThreadDeadline {
    /// How long the caller will still wait, on its kernel's clock; `None` if it has no deadline,
    /// zero if that has passed. Reads a clock: tens of nanoseconds.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        (self.until != Time::NEVER).then(|| self.until.since((self.outlook.clock)()))
    }

    /// Whether the caller's deadline has passed.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.until != Time::NEVER && self.until <= (self.outlook.clock)()
    }

    /// Whether the caller was answered without the job's value, by its deadline or a cancellation,
    /// or is gone: nobody waits for it any more. One load.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.outlook.waited_for[self.token as usize].load(Ordering::Acquire) != self.job
    }

    /// Both questions as one, for a `?`.
    ///
    /// # Errors
    ///
    /// [`NobodyWaits`] if the deadline has passed or the caller has given up.
    pub fn check(&self) -> Result<(), NobodyWaits> {
        if self.is_abandoned() || self.is_expired() { Err(NobodyWaits) } else { Ok(()) }
    }
}

impl fmt::Debug for ThreadDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadDeadline")
            .field("job", &self.job)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// The caller of a job has been answered, or is about to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NobodyWaits;

impl fmt::Display for NobodyWaits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody waits for this job any more")
    }
}

impl std::error::Error for NobodyWaits {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_was_abandoned_stays_so_when_its_token_is_anothers() {
        let outlook = Arc::new(Outlook::new(1, Box::new(|| Time::ZERO)));
        let granted = |job| {
            let mut context = ThreadContext::new(job, Time::NEVER, &outlook, Vec::new());
            context.set_token(0);
            context.deadline.clone()
        };
        let first = granted(1);
        assert!(!first.is_abandoned());
        outlook.abandon(0);
        let second = granted(2);
        assert_eq!([&first, &second].map(ThreadDeadline::is_abandoned), [true, false]);
        outlook.abandon_all();
        assert_eq!([&first, &second].map(ThreadDeadline::is_abandoned), [true, true]);
    }
}
