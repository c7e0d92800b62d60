//! A limiter: how many jobs of one class may have a thread at one time.

use std::panic::Location;
use std::rc::Rc;

use super::{IterateInThread, RunInThread};
use crate::core::limiter::LimiterCore;

/// Bounds how many jobs of one class have a thread at one time, so that a slow class leaves the
/// others their threads. Jobs above the bound wait in its own line, first in, first out, and not in
/// the pool's. That line has no bound: who is to be refused rather than wait meets a
/// [`Limit`](crate::admission::Limit) first.
///
/// A job takes a token here and one of the pool, and keeps both until its thread has really ended,
/// even if its caller was answered before. Clones are the same limiter; it belongs to one kernel
/// while it has jobs.
///
/// ```no_run
/// use traps::threads::Limiter;
///
/// # async fn example() -> Result<(), traps::Error> {
/// let disk = Limiter::new("disk", 4);
/// let text = disk.run_in_thread(|| std::fs::read_to_string("/etc/hostname")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Limiter(pub(super) Rc<LimiterCore>);

impl Limiter {
    /// A limiter with so many tokens; 0 becomes 1. The name is one word, for the log.
    #[must_use]
    pub fn new(name: &'static str, tokens: usize) -> Limiter {
        let tokens = tokens.max(1);
        Limiter(Rc::new(LimiterCore { name, tokens, ..LimiterCore::default() }))
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
        RunInThread::new(move || Some(Ok(closure())), Some(self.0.clone()), Location::caller())
    }

    /// [`iterate_in_thread`](crate::iterate_in_thread()), with each item within this limit.
    ///
    /// # Panics
    ///
    /// As [`run_in_thread`](Limiter::run_in_thread), when an item is awaited.
    #[must_use]
    pub fn iterate_in_thread<I: Iterator<Item: Send> + Send + 'static>(
        &self,
        iterator: I,
    ) -> IterateInThread<I> {
        IterateInThread::new(iterator, Some(self.0.clone()))
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
