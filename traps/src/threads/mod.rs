//! Blocking work on a worker thread.
//!
//! A job runs where no kernel is: what it may know of its task is in `context`. How many may run is
//! the kernel's matter, and a `limiter`'s. For programs: [`run_in_thread`], [`iterate_in_thread`],
//! [`Limiter`], [`thread_deadline`] and their errors; [`Work`], [`ThreadContext`] and
//! [`ThreadClock`] are what a kernel gets.

pub(crate) mod context;
mod iterate;
mod limiter;
mod panics;

use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use crate::core::call::Call;
use crate::core::filing;
use crate::core::gate;
use crate::core::limiter::LimiterCore;
use crate::core::names::Site;
use crate::core::posting;
use crate::core::protocol::{NewJob, Parked, Post, Reply, ServicePost, Trap};
use crate::error::Error;
use crate::time::Time;
use crate::verbs::in_force;

pub use crate::core::protocol::Work;
pub use context::is_in_job;
pub use context::{ThreadClock, ThreadContext, ThreadDeadline, thread_deadline};
pub use iterate::{IterateInThread, NextItem, iterate_in_thread};
pub use limiter::Limiter;
pub(crate) use panics::caught;
pub use panics::{drop_quietly, into_panic_message, panic_message, quietly};

/// A job, and what comes of it: its caller and the thread that runs it share it.
struct Job<F, T> {
    state: Mutex<State<F, T>>,
}

enum State<F, T> {
    Waiting(F),
    Running,
    /// `None` if it did not run, if it has left elsewhere what came of it, or once that is taken.
    Ended(Option<Result<T, String>>),
}

impl<F, T> Job<F, T> {
    /// Nothing foreign is called or dropped under the lock.
    fn replace(&self, state: State<F, T>) -> State<F, T> {
        mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), state)
    }
}

impl<F, T> Work for Job<F, T>
where
    F: FnOnce() -> Option<Result<T, String>> + Send,
    T: Send + 'static,
{
    fn run(&self) {
        if let State::Waiting(closure) = self.replace(State::Running) {
            let ended = caught(closure).unwrap_or_else(|message| Some(Err(message)));
            drop(self.replace(State::Ended(ended)));
        }
    }

    fn take(&self) -> Option<Result<Box<dyn Any + Send>, String>> {
        Some(self.take_value()?.map(|value| Box::new(value) as Box<_>))
    }
}

/// Where the caller of a job looks for its value.
trait Slot<T>: Work {
    fn take_value(&self) -> Option<Result<T, String>>;
}

impl<F, T> Slot<T> for Job<F, T>
where
    F: FnOnce() -> Option<Result<T, String>> + Send,
    T: Send + 'static,
{
    fn take_value(&self) -> Option<Result<T, String>> {
        match self.replace(State::Ended(None)) {
            State::Ended(ended) => ended,
            State::Waiting(_) | State::Running => None,
        }
    }
}

/// Runs `closure` on a worker thread and waits for its value. *Blocks* the task, always, and never
/// the kernel. Costs an allocation for the job and two wake-ups of a thread.
///
/// As many jobs run at one time as the kernel's option `threads` says; others wait in one line,
/// first in, first out. The job knows the deadline of its caller ([`thread_deadline`]) and
/// sees the values of its [`InheritedLocal`](crate::InheritedLocal)s as they are now.
///
/// # Errors
///
/// [`Error::Interrupt`], [`Error::Panicked`], [`Error::WouldNest`] inside a job, and
/// [`Error::Moved`]. After an interrupt, a job that has no token yet never runs; one that has keeps
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
    job: Arc<dyn Slot<T>>,
    /// It was handed over.
    is_submitted: bool,
    limiter: Option<Rc<LimiterCore>>,
    call: Call,
}

impl<T: Send + 'static> RunInThread<T> {
    /// The closure gives what comes of the job, or `None` if it leaves that elsewhere.
    fn new<F>(closure: F, limiter: Option<Rc<LimiterCore>>, site: Site) -> RunInThread<T>
    where
        F: FnOnce() -> Option<Result<T, String>> + Send + 'static,
    {
        let job = Arc::new(Job { state: Mutex::new(State::Waiting(closure)) });
        RunInThread { job, is_submitted: false, limiter, call: Call::from(site) }
    }
}

impl<T> fmt::Debug for RunInThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunInThread").field("call", &self.call).finish_non_exhaustive()
    }
}

impl<T: 'static> Future for RunInThread<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let RunInThread { job, is_submitted, limiter, call } = &mut *self;
        if !*is_submitted {
            if is_in_job() {
                return Poll::Ready(Err(Error::WouldNest));
            }
            limiter.iter().for_each(|limiter| assert_here(limiter));
        } else if !call.ticket().is_some_and(filing::is_here) {
            return Poll::Ready(Err(Error::Moved));
        }
        let mut number = 0;
        let polled = call.poll(cx, || {
            number = gate::with_shared(|kernel| {
                kernel.jobs.set(kernel.jobs.get() + 1);
                kernel.jobs.get()
            })
            .expect("who polls a task is a kernel");
            Trap::Park { what: Parked::Job(number), external: false }
        });
        let Poll::Ready(reply) = polled else {
            if !mem::replace(is_submitted, true) {
                submit(number, call, job.clone(), limiter.clone());
            }
            return Poll::Pending;
        };
        Poll::Ready(match reply {
            Reply::Job(_) => match job.take_value() {
                Some(Ok(value)) => Ok(value),
                Some(Err(message)) => Err(Error::Panicked(message)),
                None => Err(Error::Panicked("the job has no value".to_owned())),
            },
            Reply::Interrupt(interrupt) => Err(Error::Interrupt(interrupt)),
            other => other.wrong(),
        })
    }
}

/// Hands a job over. Its wait has just been filed, so it is submitted behind that.
fn submit<T: 'static>(
    job: u64,
    call: &Call,
    work: Arc<dyn Slot<T>>,
    limiter: Option<Rc<LimiterCore>>,
) {
    let (Some(ticket), Some(task)) = (call.ticket(), gate::task()) else { return };
    let until = in_force(call.site()).map_or(Time::NEVER, |found| found.deadline);
    let work: Arc<dyn Work> = work;
    let job = NewJob { job, ticket, task, site: call.site(), work, limiter, until };
    posting::post(Post::Service(ServicePost::Submit(Box::new(job))));
}

fn assert_here(limiter: &LimiterCore) {
    let home = limiter.home.get();
    let here = home == 0 || home == gate::epoch() || limiter.is_unused();
    assert!(here, "rule: a limiter that has jobs of one kernel cannot be used in another");
}
