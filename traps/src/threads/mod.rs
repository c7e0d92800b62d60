//! Blocking work on a worker thread.
//!
//! A job runs where no kernel is: what it may know of its task is in `context`. How many may run is
//! the kernel's matter, and a `limiter`'s. For programs: [`run_in_thread`], [`iterate_in_thread`],
//! [`Limiter`], [`thread_deadline`] and their errors; [`Work`], [`ThreadContext`], [`Outlook`] and
//! [`LimiterCore`] are what a kernel gets.

mod context;
mod item_slot;
mod iterate;
mod limiter;

use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::thread;

use crate::call::Call;
use crate::cancellable::NotStarted;
use crate::error::wrong_answer;
use crate::gate;
use crate::interrupt::{Interrupt, carries_interrupt};
use crate::protocol::{Answer, Failure, Post, Request, Site, TaskRef};

pub use context::{NobodyWaits, Outlook, ThreadContext, ThreadDeadline, thread_deadline};
pub(crate) use context::{crossed, is_in_job};
pub use iterate::{IterateInThread, NextItem, iterate_in_thread};
pub use limiter::{Limiter, LimiterCore};

/// A job for a worker thread: it runs once and keeps its own result.
pub trait Work: Send {
    /// Runs the job in its context; catches its panic.
    fn run(&mut self, context: ThreadContext);
    /// The job itself, to get the result out.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
    /// Its value, or the message of its panic, for whoever hears of jobs that nobody waits for;
    /// `None` if there is nothing to hear, for it has kept elsewhere what came of it.
    fn into_outcome(self: Box<Self>) -> Option<Result<Box<dyn Any>, String>>;
}

impl fmt::Debug for dyn Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

struct Job<F, T> {
    closure: Option<F>,
    result: Option<thread::Result<T>>,
}

impl<F, T> Work for Job<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    fn run(&mut self, context: ThreadContext) {
        if let Some(closure) = self.closure.take() {
            let job = AssertUnwindSafe(|| context.run(closure));
            self.result = Some(catch_unwind(job));
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn into_outcome(self: Box<Self>) -> Option<Result<Box<dyn Any>, String>> {
        Some(match value_of(self.result) {
            Ok(value) => Ok(Box::new(value)),
            Err(message) => Err(message),
        })
    }
}

/// What came of a job, or the message of its panic.
fn value_of<T>(result: Option<thread::Result<T>>) -> Result<T, String> {
    match result {
        Some(Ok(value)) => Ok(value),
        Some(Err(panic)) => Err(into_panic_message(panic)),
        None => Err("the job did not run to its end".to_owned()),
    }
}

/// Why a job gave no value.
#[derive(Debug)]
pub enum ThreadError {
    /// The wait ended early; the job is not started, or its value, when it ends, is an orphan.
    Interrupt(Interrupt),
    /// The job panicked, with this message.
    Panicked(String),
    /// It was asked for from inside a job, which has no kernel around it: run it right there, or
    /// give what comes of the job to a task that asks for the next one (row R1).
    WouldNest,
    /// The job was not begun: see [`cancellable`](crate::cancellable()).
    NotStarted(NotStarted),
}

impl fmt::Display for ThreadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadError::Interrupt(interrupt) => interrupt.fmt(f),
            ThreadError::Panicked(message) => write!(f, "the job panicked: {message}"),
            ThreadError::WouldNest => f.write_str(
                "a job asked for another job: run it right there, or give the result to a task \
                 that asks for the next one",
            ),
            ThreadError::NotStarted(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ThreadError {}

impl From<NotStarted> for ThreadError {
    fn from(error: NotStarted) -> ThreadError {
        ThreadError::NotStarted(error)
    }
}

carries_interrupt!(ThreadError);

impl From<ThreadError> for std::io::Error {
    fn from(error: ThreadError) -> std::io::Error {
        match error {
            ThreadError::Interrupt(interrupt) => interrupt.into(),
            ThreadError::NotStarted(error) => error.into(),
            ThreadError::WouldNest | ThreadError::Panicked(_) => std::io::Error::other(error),
        }
    }
}

/// Runs `closure` on a worker thread and waits for its value. *Blocks* the task, always, and never
/// the kernel. Costs one allocation and two wake-ups of a thread.
///
/// As many jobs run at one time as the kernel's option `threads` says; others wait in one line,
/// first in, first out. The job knows the deadline of its caller ([`thread_deadline`]) and
/// sees the values of its [`InheritedLocal`](crate::InheritedLocal)s as they are now.
///
/// # Errors
///
/// [`ThreadError`]. After an interrupt, a job that has no token yet never runs; one that has keeps
/// it until it ends, also where its thread has yet to begin it, and its value goes to the kernel's
/// hook for orphans (row X8). So does a value that came and was not read, as that of a branch that
/// lost a race.
#[track_caller]
pub fn run_in_thread<F, T>(closure: F) -> RunInThread<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    run_in_thread_at(closure, None, Location::caller())
}

fn run_in_thread_at<F, T>(
    closure: F,
    limiter: Option<Rc<LimiterCore>>,
    site: Site,
) -> RunInThread<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let work = Box::new(Job { closure: Some(closure), result: None });
    let result = |work: Box<dyn Work>| {
        let job = work.into_any().downcast::<Job<F, T>>().expect("a job comes back as it went");
        value_of(job.result)
    };
    RunInThread::new(work, limiter, result, site)
}

/// The future of [`run_in_thread`].
#[must_use = "a trap that is not awaited is never made"]
pub struct RunInThread<T> {
    work: Option<Box<dyn Work>>,
    limiter: Option<Rc<LimiterCore>>,
    result: fn(Box<dyn Work>) -> Result<T, String>,
    call: Call,
    /// Who asked.
    task: Option<TaskRef>,
}

impl<T> RunInThread<T> {
    /// `result` gets the value out of the job, or the message of its panic.
    fn new(
        work: Box<dyn Work>,
        limiter: Option<Rc<LimiterCore>>,
        result: fn(Box<dyn Work>) -> Result<T, String>,
        site: Site,
    ) -> RunInThread<T> {
        RunInThread { work: Some(work), limiter, result, call: Call::at(site), task: None }
    }
}

impl<T> Drop for RunInThread<T> {
    fn drop(&mut self) {
        if !self.call.is_filed() {
            return;
        }
        let site = self.call.site();
        if let (Some(Ok(Answer::Job { job, work })), Some(task)) = (self.call.abandon(), self.task)
        {
            gate::post(Post::Orphan { job, task, site, work });
        }
    }
}

impl<T> fmt::Debug for RunInThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunInThread").field("call", &self.call).finish_non_exhaustive()
    }
}

impl<T> Unpin for RunInThread<T> {}

impl<T> Future for RunInThread<T> {
    type Output = Result<T, ThreadError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let RunInThread { work, limiter, result, call, task } = &mut *self;
        if !call.is_filed() {
            *task = gate::task();
            if is_in_job() {
                return Poll::Ready(Err(ThreadError::WouldNest));
            }
            let elsewhere = |limiter: &Rc<LimiterCore>| {
                let home = limiter.home.get();
                home != 0 && home != gate::epoch() && !limiter.is_unused()
            };
            let rule = "rule: a limiter that has jobs of one kernel cannot be used in another";
            assert!(!limiter.as_ref().is_some_and(elsewhere), "{rule}");
        }
        let request = || {
            let work = work
                .take()
                .expect("rule: a job is offered once; the task or the kernel that had it is gone");
            Request::Offload { work, limiter: limiter.clone() }
        };
        call.poll(cx, request).map(|answer| match answer {
            Ok(Answer::Job { work, .. }) => result(work).map_err(ThreadError::Panicked),
            Ok(other) => wrong_answer(&other),
            Err(Failure::Interrupt(interrupt)) => Err(ThreadError::Interrupt(interrupt)),
            Err(other) => unreachable!("rule: a job is not refused by {other:?}"),
        })
    }
}

/// The message of a panic, as far as it is text.
#[must_use]
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "a panic without a message"
    }
}

/// The same of a payload that nobody else wants, and whose own drop may panic.
#[must_use]
pub fn into_panic_message(panic: Box<dyn Any + Send>) -> String {
    let message = panic_message(&*panic).to_owned();
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        mem::forget(another);
    }
    message
}
