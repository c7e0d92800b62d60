//! Jobs on worker threads, as a task and its kernel pass them to each other.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use crate::core::table::{Site, TaskId, TaskRef, Ticket};
use crate::time::Time;

/// A job for a worker thread. It runs once, and stores its result for its caller.
pub trait Work: Send + Sync {
    /// Runs the job, and catches its panic.
    fn run(&self);
    /// Takes the result of the job, for the hook of orphans. Returns `None` if there is none.
    fn take(&self) -> Option<Result<Box<dyn Any + Send>, String>>;
}

/// A job that a task asks for.
pub struct NewJob {
    /// The number of the job.
    pub job: u64,
    /// The ticket of the caller's wait.
    pub ticket: Ticket,
    /// The task that asked for the job.
    pub task: TaskRef,
    /// The call site that asked for the job.
    pub site: Site,
    /// The job.
    pub work: Arc<dyn Work>,
    /// Whether only the caller needs the job, so that a shutdown need not wait for it.
    pub is_question: bool,
    /// The limiter whose limit also applies to the job.
    pub limiter: Option<Rc<LimiterCore>>,
    /// The deadline in force at the call site.
    pub until: Time,
}

/// A job that has ended.
pub struct EndedJob {
    /// The number of the job.
    pub job: u64,
    /// The task that asked for the job.
    pub task: TaskId,
    /// The call site that asked for the job.
    pub site: Site,
    /// The job, with its value.
    pub work: Arc<dyn Work>,
}

impl std::fmt::Debug for EndedJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EndedJob({})", self.job)
    }
}

/// A limiter: a bound on the number of jobs of one class that have a thread at one time.
#[derive(Debug, Default)]
pub struct LimiterCore {
    /// The name of the limiter in the log.
    pub name: &'static str,
    /// The number of tokens.
    pub tokens: usize,
    /// The number of tokens in use.
    pub in_use: Cell<usize>,
    /// The largest number of tokens that were in use at one time.
    pub peak: Cell<usize>,
    /// The numbers of the waiting jobs, in the order of arrival.
    pub line: RefCell<BTreeSet<u64>>,
}

impl LimiterCore {
    /// Forgets all jobs, because their kernel is gone.
    pub fn reset(&self) {
        self.in_use.set(0);
        self.line.borrow_mut().clear();
    }
}
