//! A limiter: how many jobs of one class may have a thread at one time.
//!
//! Plain counts and a line of job numbers; the kernel keeps them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;

use super::{IterateInThread, RunInThread, run_in_thread_at};

/// Bounds how many jobs of one class have a thread at one time, so that a slow class leaves the
/// others their threads. Jobs above the bound wait in its own line, first in, first out, and not in
/// the pool's. That line has no bound: who is to be refused rather than wait meets a
/// [`Gate`](crate::admission::Gate) first (row X9).
///
/// A job takes a token here and one of the pool, and keeps both until its thread has really ended,
/// even if its caller was answered before. Clones are the same limiter; it belongs to one kernel
/// while it has jobs.
///
/// ```no_run
/// use traps::threads::{Limiter, ThreadError};
///
/// # async fn example() -> Result<(), ThreadError> {
/// let disk = Limiter::new("disk", 4);
/// let text = disk.run_in_thread(|| std::fs::read_to_string("/etc/hostname")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Limiter(pub(super) Rc<LimiterCore>);

impl Limiter {
    /// A limiter with so many tokens; 0 becomes 1. The name is one word, for the log.
    #[must_use]
    pub fn new(name: &'static str, tokens: usize) -> Limiter {
        Limiter(Rc::new(LimiterCore {
            name,
            tokens: tokens.max(1),
            in_use: Cell::new(0),
            peak: Cell::new(0),
            line: RefCell::default(),
            home: Cell::new(0),
        }))
    }

    /// [`run_in_thread`](crate::run_in_thread()), within this limit. *Blocks*.
    ///
    /// # Errors
    ///
    /// Those of [`run_in_thread`](crate::run_in_thread()).
    ///
    /// # Panics
    ///
    /// When it is awaited, if this limiter still has jobs of another kernel.
    #[track_caller]
    pub fn run_in_thread<F, T>(&self, closure: F) -> RunInThread<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        run_in_thread_at(closure, Some(self.0.clone()), Location::caller())
    }

    /// [`iterate_in_thread`](crate::iterate_in_thread()), with each item within this limit.
    ///
    /// # Panics
    ///
    /// As [`run_in_thread`](Limiter::run_in_thread), when an item is awaited.
    #[must_use]
    pub fn iterate_in_thread<I>(&self, iterator: I) -> IterateInThread<I>
    where
        I: Iterator + Send + 'static,
        I::Item: Send + 'static,
    {
        IterateInThread::new(iterator, Some(self.0.clone()))
    }

    /// As named when it was made.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// How many tokens there are.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.0.tokens
    }

    /// Tokens that jobs have now, abandoned ones too.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.0.in_use.get()
    }

    /// The most that were in use at one time.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.0.peak.get()
    }

    /// Jobs that wait for a token of this limiter.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.line.borrow().len()
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("name", &self.0.name)
            .field("tokens", &self.0.tokens)
            .field("in_use", &self.0.in_use.get())
            .finish_non_exhaustive()
    }
}

/// A limiter as the kernel keeps it.
#[derive(Debug)]
pub struct LimiterCore {
    /// Its name in the log.
    pub name: &'static str,
    /// How many jobs may have a token at one time.
    pub tokens: usize,
    /// How many have.
    pub in_use: Cell<usize>,
    /// The most that had.
    pub peak: Cell<usize>,
    /// The jobs that wait: their numbers, which are in the order of their coming, and where their
    /// kernel keeps them.
    pub line: RefCell<BTreeMap<u64, u32>>,
    /// The kernel whose jobs these are; 0 for none.
    pub home: Cell<u32>,
}

impl LimiterCore {
    /// Whether it has no job at all.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.in_use.get() == 0 && self.line.borrow().is_empty()
    }

    /// Forgets all jobs: their kernel is gone.
    pub fn reset(&self) {
        self.in_use.set(0);
        self.line.borrow_mut().clear();
        self.home.set(0);
    }
}
