//! Blocking work on a worker thread.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use crate::call::Call;
use crate::cancellable::NotStarted;
use crate::error::wrong_answer;
use crate::interrupt::{Interrupt, Interruptible};
use crate::protocol::{Answer, Failure, Request};

/// A job for a worker thread: it runs once and keeps its own result.
pub trait Work: Send {
    /// Runs the job; catches its panic.
    fn run(&mut self);
    /// The job itself, to get the result out.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
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
    fn run(&mut self) {
        if let Some(closure) = self.closure.take() {
            self.result = Some(catch_unwind(AssertUnwindSafe(closure)));
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Why a job gave no value.
#[derive(Debug)]
pub enum ThreadError {
    /// The wait ended early; the job is not started, or runs on and its result is dropped.
    Interrupt(Interrupt),
    /// The job panicked, with this message.
    Panicked(String),
    /// No thread could be started for it.
    Refused(std::io::Error),
    /// The job was not begun: see [`cancellable`](crate::cancellable()).
    NotStarted(NotStarted),
}

impl fmt::Display for ThreadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadError::Interrupt(interrupt) => interrupt.fmt(f),
            ThreadError::Panicked(message) => write!(f, "the job panicked: {message}"),
            ThreadError::Refused(error) => write!(f, "no thread could be started: {error}"),
            ThreadError::NotStarted(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ThreadError {}

impl From<Interrupt> for ThreadError {
    fn from(interrupt: Interrupt) -> ThreadError {
        ThreadError::Interrupt(interrupt)
    }
}

impl From<NotStarted> for ThreadError {
    fn from(error: NotStarted) -> ThreadError {
        ThreadError::NotStarted(error)
    }
}

impl Interruptible for ThreadError {
    fn interrupt(&self) -> Option<&Interrupt> {
        match self {
            ThreadError::Interrupt(interrupt) => Some(interrupt),
            _ => None,
        }
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        match self {
            ThreadError::Interrupt(interrupt) => Some(interrupt),
            _ => None,
        }
    }
}

impl From<ThreadError> for std::io::Error {
    fn from(error: ThreadError) -> std::io::Error {
        match error {
            ThreadError::Interrupt(interrupt) => interrupt.into(),
            ThreadError::Refused(error) => error,
            ThreadError::NotStarted(error) => error.into(),
            ThreadError::Panicked(_) => std::io::Error::other(error),
        }
    }
}

/// Runs `closure` on a worker thread and waits for its value. Always blocks the task, never the
/// kernel. Costs one allocation and two wake-ups of a thread.
///
/// # Errors
///
/// [`ThreadError`]. After an interrupt, a job that is already running runs to its end unheard.
#[track_caller]
pub fn run_in_thread<F, T>(closure: F) -> RunInThread<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let work = Box::new(Job { closure: Some(closure), result: None });
    let result = |work: Box<dyn Work>| {
        let job = work.into_any().downcast::<Job<F, T>>().expect("a job comes back as it went");
        job.result
    };
    RunInThread { work: Some(work), result, call: Call::here(), output: PhantomData }
}

/// The future of [`run_in_thread`].
#[must_use = "a trap that is not awaited is never made"]
pub struct RunInThread<T> {
    work: Option<Box<dyn Work>>,
    result: fn(Box<dyn Work>) -> Option<thread::Result<T>>,
    call: Call,
    output: PhantomData<T>,
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
        let RunInThread { work, result, call, .. } = &mut *self;
        let request =
            || {
                Request::Offload(work.take().expect(
                    "rule: a job is offered once; the task or the kernel that had it is gone",
                ))
            };
        call.poll(cx, request).map(|answer| match answer {
            Ok(Answer::Job(work)) => match result(work) {
                Some(Ok(value)) => Ok(value),
                Some(Err(panic)) => Err(ThreadError::Panicked(panic_message(&*panic).to_owned())),
                None => Err(ThreadError::Panicked("the job did not run to its end".to_owned())),
            },
            Ok(other) => wrong_answer(&other),
            Err(Failure::Interrupt(interrupt)) => Err(ThreadError::Interrupt(interrupt)),
            Err(Failure::Refused(error)) => Err(ThreadError::Refused(error)),
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
