//! Blocking work on a worker thread.
//!
//! A job runs where no kernel is: what it may know of its task is in `context`. How many may run is
//! the kernel's matter, and a `limiter`'s. For programs: [`run_in_thread`], [`iterate_in_thread`],
//! [`Limiter`], [`thread_deadline`] and their errors; [`Work`], [`Outcome`],
//! [`ThreadContext`], [`ThreadClock`] and [`LimiterCore`] are what a kernel gets.

mod context;
mod iterate;
mod limiter;

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::call::{Call, only_interrupt};
use crate::cancellable::NotStarted;
use crate::gate;
use crate::interrupt::{Interrupt, carries_interrupt};
use crate::protocol::{Owned, Post, Request, Site};

pub use context::{NobodyWaits, ThreadClock, ThreadContext, ThreadDeadline, thread_deadline};
pub(crate) use context::{crossed, is_in_job};
pub use iterate::{IterateInThread, NextItem, iterate_in_thread};
pub use limiter::{Limiter, LimiterCore};

/// A job for a worker thread: it runs once and keeps what comes of it.
pub trait Work: Send {
    /// Runs the job in its context; catches its panic.
    fn run(&mut self, context: ThreadContext);
    /// Its result.
    fn into_outcome(self: Box<Self>) -> Outcome;
}

/// What comes of a job: its value, or the message of its panic. `None` if it did not run, or if it
/// has left elsewhere what came of it.
pub type Outcome = Option<Result<Box<dyn Any + Send>, String>>;

struct Job<F> {
    closure: Option<F>,
    outcome: Outcome,
}

impl<F, T> Work for Job<F>
where
    F: FnOnce() -> Option<Result<T, String>> + Send,
    T: Send + 'static,
{
    fn run(&mut self, context: ThreadContext) {
        if let Some(closure) = self.closure.take() {
            let ended = context.run(closure).unwrap_or_else(|message| Some(Err(message)));
            self.outcome = ended.map(|ended| ended.map(|value| Box::new(value) as Box<_>));
        }
    }

    fn into_outcome(self: Box<Self>) -> Outcome {
        self.outcome
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
    /// give what comes of the job to a task that asks for the next one.
    WouldNest,
    /// Another task polled the future after the job had been handed over: a job belongs to the task
    /// that asked for it. What comes of it is an orphan.
    Moved,
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
            ThreadError::Moved => {
                f.write_str("another task polled the future of a job that had been handed over")
            }
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
            ThreadError::WouldNest | ThreadError::Moved | ThreadError::Panicked(_) => {
                std::io::Error::other(error)
            }
        }
    }
}

/// Runs `closure` on a worker thread and waits for its value. *Blocks* the task, always, and never
/// the kernel. Costs three allocations and two wake-ups of a thread.
///
/// As many jobs run at one time as the kernel's option `threads` says; others wait in one line,
/// first in, first out. The job knows the deadline of its caller ([`thread_deadline`]) and
/// sees the values of its [`InheritedLocal`](crate::InheritedLocal)s as they are now.
///
/// # Errors
///
/// [`ThreadError`]. After an interrupt, a job that has no token yet never runs; one that has keeps
/// it until it ends, also where its thread has yet to begin it, and its value goes to the kernel's
/// hook for orphans. So does a value that came and was not read, as that of a branch that
/// lost a race.
#[track_caller]
pub fn run_in_thread<F, T>(closure: F) -> RunInThread<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    RunInThread::new(move || Some(Ok(closure())), None, Location::caller())
}

/// The future of [`run_in_thread`].
#[must_use = "a trap that is not awaited is never made"]
pub struct RunInThread<T> {
    work: Option<Box<dyn Work>>,
    limiter: Option<Rc<LimiterCore>>,
    call: Call,
    output: PhantomData<fn() -> T>,
}

impl<T: Send + 'static> RunInThread<T> {
    /// The closure gives what comes of the job, or `None` if it leaves that elsewhere.
    fn new<F>(closure: F, limiter: Option<Rc<LimiterCore>>, site: Site) -> RunInThread<T>
    where
        F: FnOnce() -> Option<Result<T, String>> + Send + 'static,
    {
        let work = Box::new(Job { closure: Some(closure), outcome: None });
        RunInThread { work: Some(work), limiter, call: Call::from(site), output: PhantomData }
    }
}

impl<T> Drop for RunInThread<T> {
    fn drop(&mut self) {
        let site = self.call.site();
        if let Some((_, Some(Owned::Job { job, task, work }))) = self.call.abandon() {
            gate::post(Post::Orphan { job, task, site, work });
        }
    }
}

impl<T> fmt::Debug for RunInThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunInThread").field("call", &self.call).finish_non_exhaustive()
    }
}

impl<T: 'static> Future for RunInThread<T> {
    type Output = Result<T, ThreadError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let RunInThread { work, limiter, call, .. } = &mut *self;
        if !call.is_filed() {
            if is_in_job() {
                return Poll::Ready(Err(ThreadError::WouldNest));
            }
            limiter.iter().for_each(|limiter| limiter.assert_here());
        }
        if work.is_none() && !call.is_filed_here() {
            return Poll::Ready(Err(ThreadError::Moved));
        }
        let request = || {
            let work = work.take().expect("a job that was handed over is not asked for again");
            gate::attach(Owned::Offload(work, limiter.clone()));
            Request::Offload
        };
        call.poll(cx, request).map(|reply| match reply.open() {
            Err(Owned::Job { work, .. }) => match work.into_outcome() {
                Some(Ok(value)) => {
                    Ok(*value.downcast().expect("rule: a job comes back as it went"))
                }
                Some(Err(message)) => Err(ThreadError::Panicked(message)),
                None => Err(ThreadError::Panicked("the job has no value".to_owned())),
            },
            Err(owned) => Err(ThreadError::Interrupt(only_interrupt(owned))),
            Ok(_) => reply.wrong(),
        })
    }
}

/// Runs foreign code; the message of its panic, if that happens.
pub(crate) fn caught<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(into_panic_message)
}

/// Runs foreign code, such as a waker; a panic of it goes no further.
pub fn quietly(code: impl FnOnce()) {
    // The panic hook has told of it. To drop its payload may panic again.
    let _ = catch_unwind(AssertUnwindSafe(code)).map_err(mem::forget);
}

/// Drops a foreign value; a panic of it goes no further.
pub fn drop_quietly<T>(value: T) {
    quietly(move || drop(value));
}

/// The message of a panic, as far as it is text.
#[must_use]
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let string = || panic.downcast_ref::<String>().map(String::as_str);
    let text = panic.downcast_ref::<&str>().copied().or_else(string);
    text.unwrap_or("a panic without a message")
}

/// As above, of a payload that nobody else wants, and whose own drop may panic.
#[must_use]
pub fn into_panic_message(panic: Box<dyn Any + Send>) -> String {
    let message = panic_message(&*panic).to_owned();
    drop_quietly(panic);
    message
}
