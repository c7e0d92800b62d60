//! A limit in front of scarce work: in while there is room, refused at once where there is none.
//!
//! Refusing is its whole purpose, so nobody ever waits here. Who means to wait takes a permit of a
//! [`WaitQueue`](crate::WaitQueue), or stands in line for a worker thread. Knows no thread and no
//! kernel, but for the `cap` lines.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::gate;
use crate::error::Error;
use crate::limits::ADMISSION_PAUSE;
use crate::notes::note_cap;
use crate::time::Time;

/// Lets a bounded number in and refuses the others, in the turn in which they ask and before any
/// thread is used.
///
/// Clones are the same limit. It may be shared between threads; a place in it goes where the work
/// goes: moved into a job, it stays taken until the job's thread has really ended, even if the
/// caller gave up before.
///
/// ```no_run
/// use traps::admission::Limit;
/// use traps::{Error, run_in_thread};
///
/// async fn request_task(limit: &Limit) -> Result<String, Error> {
///     let Ok(place) = limit.try_enter() else {
///         return Ok("too busy, ask again later".to_owned());
///     };
///     run_in_thread(move || {
///         let _place = place;
///         "a task".to_owned()
///     })
///     .await
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Limit(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    name: &'static str,
    limit: u64,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    inside: u64,
    peak: u64,
    entered: u64,
    refused: u64,
    /// Refusals that no line of the log has counted yet.
    unlogged: u64,
    /// A line has said that it refuses, and nobody has come in since.
    logged: bool,
    /// When that line was.
    logged_at: Option<Time>,
}

impl Shared {
    /// Takes the lock. Nothing foreign is called under it, so a poisoned one guards what is whole.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Limit {
    /// A limit of so many at a time; zero refuses everybody. The name is one word, for the log and
    /// for the error.
    #[must_use]
    pub fn new(name: &'static str, limit: u64) -> Limit {
        Limit(Arc::new(Shared { name, limit, counts: Mutex::default() }))
    }

    /// Goes in, until what is given back is dropped. Neither traps nor blocks; takes a lock for a
    /// few instructions.
    ///
    /// The first refusal after an entry puts a `cap` line into the log, unless the last such line
    /// is less than ten seconds old; the next entry puts one with the number of refusals if there
    /// were more, those counted that had no line before. Those on other threads are not logged.
    /// If kernels share it that began at different times, the pause is shorter by as much.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if there is no room now.
    pub fn try_enter(&self) -> Result<Place, Error> {
        let Shared { name, limit, .. } = *self.0;
        let mut counts = self.0.counts();
        if counts.inside >= limit {
            counts.refused += 1;
            drop(counts);
            self.log_refusal();
            return Err(Error::Full);
        }
        counts.inside += 1;
        counts.peak = counts.peak.max(counts.inside);
        counts.entered += 1;
        // An entry where no kernel runs, and so no log is, leaves this to the next one.
        if counts.logged && gate::epoch() != 0 {
            counts.logged = false;
            let refused = mem::take(&mut counts.unlogged);
            drop(counts);
            if refused > 1 {
                note_cap(format!("name={name} limit={limit} refused={refused}"));
            }
        }
        Ok(Place(self.0.clone()))
    }

    /// Puts a refusal into the log, but not each: where places come free all the time and others
    /// are refused all the time, clients would fill the log as fast as they like.
    fn log_refusal(&self) {
        let Some(now) = gate::now() else { return };
        let mut counts = self.0.counts();
        counts.unlogged += 1;
        // A line from the future is of another kernel's clock.
        let is_recent = |at| at <= now && now.since(at) < ADMISSION_PAUSE;
        if !counts.logged && !counts.logged_at.is_some_and(is_recent) {
            counts.logged = true;
            counts.logged_at = Some(now);
            drop(counts);
            note_cap(format!("name={} limit={}", self.0.name, self.0.limit));
        }
    }

    /// How many it lets in at a time.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// How many are in now.
    #[must_use]
    pub fn inside(&self) -> u64 {
        self.0.counts().inside
    }

    /// The most that were in at one time.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.0.counts().peak
    }

    /// How often somebody came in.
    #[must_use]
    pub fn entered(&self) -> u64 {
        self.0.counts().entered
    }

    /// How often somebody was refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.counts().refused
    }
}

/// A place inside a [`Limit`], given up when it is dropped, on any thread.
#[derive(Debug)]
#[must_use = "a place that is dropped is given up at once"]
pub struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.counts().inside -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn f5_the_sixth_of_five_is_refused_until_one_leaves() {
        let limit = Limit::new("request_task", 5);
        let mut places: Vec<Place> = (0..5).map(|_| limit.try_enter().unwrap()).collect();
        assert_eq!(limit.try_enter().unwrap_err(), Error::Full);
        places.pop();
        places.push(limit.try_enter().unwrap());
        assert_eq!((limit.inside(), limit.entered(), limit.refused(), limit.peak()), (5, 6, 1, 5));
        places.clear();
        assert_eq!((limit.inside(), limit.peak()), (0, 5));
    }

    #[test]
    fn a_limit_of_none_refuses_everybody() {
        let limit = Limit::new("closed", 0);
        assert_eq!(limit.try_enter().unwrap_err(), Error::Full);
        assert_eq!((limit.refused(), limit.peak()), (1, 0));
    }

    #[test]
    fn a16_threads_that_rush_a_limit_are_never_more_than_that() {
        const EACH: u64 = 20_000;
        let (limit, start) = (Limit::new("rushed", 3), Barrier::new(4));
        let rush = || {
            start.wait();
            for _ in 0..EACH {
                if let Ok(_place) = limit.try_enter() {
                    assert!(limit.inside() <= limit.limit());
                }
            }
        };
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(rush))));
        assert_eq!(limit.inside(), 0);
        assert_eq!(limit.entered() + limit.refused(), 4 * EACH);
        assert!((1..=3).contains(&limit.peak()));
    }
}
