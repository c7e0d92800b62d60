//! A limit in front of scarce work: it admits work while there is room, and refuses at once if
//! there is none.
//!
//! Its purpose is to refuse, so no task ever waits here. A task that should wait takes a permit of
//! a [`Semaphore`](crate::sync::Semaphore), or waits for a worker thread. The limit works on any
//! thread, with or without a kernel. Only its `cap` lines need a kernel.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::gate;
use crate::error::Error;
use crate::notes::{Throttle, note_cap};
use crate::verbs::ADMISSION_PAUSE;

/// A limit that admits a bounded number of callers at a time and refuses the others. It refuses in
/// the same turn, before any thread is used.
///
/// Clones share one limit, and threads can share it, too. A caller that is admitted gets an
/// [`Admission`], which moves with the work. If it is moved into a job, it counts until the thread
/// has finished the job, even if the caller stopped waiting before.
///
/// ```
/// use traps::admission::AdmissionLimit;
/// use traps::{Error, run_in_thread};
///
/// async fn thumbnail(limit: &AdmissionLimit) -> Result<&'static str, Error> {
///     let admission = limit.try_admit()?;
///     run_in_thread(move || {
///         let _admission = admission; // counts until the thread has finished
///         "an image"
///     })
///     .await
/// }
///
/// # testing::run(async {
/// let limit = AdmissionLimit::new("thumbnails", 1);
/// assert_eq!(thumbnail(&limit).await, Ok("an image"));
/// let _other = limit.try_admit().unwrap();
/// assert_eq!(thumbnail(&limit).await, Err(Error::Full));
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct AdmissionLimit(Arc<Admissions>);

/// What the clones of a limit share.
#[derive(Debug)]
struct Admissions {
    name: &'static str,
    limit: u64,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    inside: u64,
    peak: u64,
    admitted: u64,
    refused: u64,
    /// Whether a log line has reported a refusal since a caller was last admitted inside a kernel.
    logged: bool,
    /// The throttle of the log lines that report a first refusal.
    throttle: Throttle,
}

impl Admissions {
    /// Takes the lock. No user code runs under it, so the counts of a poisoned lock are still
    /// correct.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmissionLimit {
    /// Makes a limit that admits `limit` callers at a time; with zero it refuses every caller. The
    /// name is one word for the log.
    ///
    /// ```
    /// let limit = traps::admission::AdmissionLimit::new("uploads", 5);
    /// assert_eq!(limit.limit(), 5);
    /// ```
    #[must_use]
    pub fn new(name: &'static str, limit: u64) -> AdmissionLimit {
        AdmissionLimit(Arc::new(Admissions { name, limit, counts: Mutex::default() }))
    }

    /// Admits the caller, or refuses at once. The caller counts until the returned [`Admission`] is
    /// dropped. Does not trap or block; holds a lock for a few instructions.
    ///
    /// The first refusal after an admission logs a `cap` line, unless the last such line is less
    /// than ten seconds old. If there were more refusals, the next admission logs a `cap` line with
    /// their number. This number includes refusals that had no line before. Refusals on threads
    /// without a kernel are not logged. If kernels with different starting times share the limit,
    /// the ten seconds are shorter by the difference.
    ///
    /// ```
    /// use traps::Error;
    /// use traps::admission::AdmissionLimit;
    ///
    /// let limit = AdmissionLimit::new("uploads", 1);
    /// let first = limit.try_admit().unwrap();
    /// assert_eq!(limit.try_admit().unwrap_err(), Error::Full);
    /// drop(first);
    /// assert!(limit.try_admit().is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Full`] if there is no room now.
    pub fn try_admit(&self) -> Result<Admission, Error> {
        let Admissions { name, limit, .. } = *self.0;
        let mut counts = self.0.counts();
        if counts.inside >= limit {
            counts.refused += 1;
            drop(counts);
            self.log_refusal();
            return Err(Error::Full);
        }
        counts.inside += 1;
        counts.peak = counts.peak.max(counts.inside);
        counts.admitted += 1;
        // Outside a kernel there is no log. Then the next admission inside a kernel logs the line.
        if counts.logged && gate::epoch() != 0 {
            counts.logged = false;
            let refused = counts.throttle.take_unlogged();
            drop(counts);
            if refused > 1 {
                note_cap(format!("name={name} limit={limit} refused={refused}"));
            }
        }
        Ok(Admission(self.0.clone()))
    }

    /// Logs a refusal, unless a refusal was logged since a caller was last admitted, or less than
    /// ten seconds ago. Without the ten seconds, clients that come and go at the limit could fill
    /// the log as fast as they like.
    fn log_refusal(&self) {
        let Some(now) = gate::now() else { return };
        let mut counts = self.0.counts();
        counts.throttle.count();
        if !counts.logged && counts.throttle.claim_line(now, ADMISSION_PAUSE) {
            counts.logged = true;
            drop(counts);
            note_cap(format!("name={} limit={}", self.0.name, self.0.limit));
        }
    }

    /// Returns the largest number of callers that are admitted at a time.
    ///
    /// ```
    /// # use traps::admission::AdmissionLimit;
    /// assert_eq!(AdmissionLimit::new("uploads", 5).limit(), 5);
    /// ```
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Returns the number of callers that are admitted now.
    ///
    /// ```
    /// # use traps::admission::AdmissionLimit;
    /// let limit = AdmissionLimit::new("uploads", 5);
    /// let _one = limit.try_admit().unwrap();
    /// assert_eq!(limit.inside(), 1);
    /// ```
    #[must_use]
    pub fn inside(&self) -> u64 {
        self.0.counts().inside
    }

    /// Returns the largest number of callers that were admitted at one time.
    ///
    /// ```
    /// # use traps::admission::AdmissionLimit;
    /// let limit = AdmissionLimit::new("uploads", 5);
    /// drop((limit.try_admit().unwrap(), limit.try_admit().unwrap()));
    /// assert_eq!((limit.inside(), limit.peak()), (0, 2));
    /// ```
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.0.counts().peak
    }

    /// Returns the number of callers that were admitted so far.
    ///
    /// ```
    /// # use traps::admission::AdmissionLimit;
    /// let limit = AdmissionLimit::new("uploads", 1);
    /// for _ in 0..3 {
    ///     drop(limit.try_admit().unwrap());
    /// }
    /// assert_eq!(limit.admitted(), 3);
    /// ```
    #[must_use]
    pub fn admitted(&self) -> u64 {
        self.0.counts().admitted
    }

    /// Returns the number of callers that were refused so far.
    ///
    /// ```
    /// # use traps::admission::AdmissionLimit;
    /// let limit = AdmissionLimit::new("uploads", 0);
    /// assert!(limit.try_admit().is_err());
    /// assert_eq!(limit.refused(), 1);
    /// ```
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.counts().refused
    }
}

/// One of the callers that an [`AdmissionLimit`] admits at a time. Dropping it, on any thread, lets
/// the limit admit another caller.
///
/// ```
/// use traps::admission::{Admission, AdmissionLimit};
///
/// struct Upload {
///     _admission: Admission,
/// }
///
/// let limit = AdmissionLimit::new("uploads", 1);
/// let upload = Upload { _admission: limit.try_admit().unwrap() };
/// assert!(limit.try_admit().is_err());
/// drop(upload);
/// assert!(limit.try_admit().is_ok());
/// ```
#[derive(Debug)]
#[must_use = "an admission that is dropped no longer counts"]
pub struct Admission(Arc<Admissions>);

impl Drop for Admission {
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
        let limit = AdmissionLimit::new("request_task", 5);
        let mut places: Vec<Admission> = (0..5).map(|_| limit.try_admit().unwrap()).collect();
        assert_eq!(limit.try_admit().unwrap_err(), Error::Full);
        places.pop();
        places.push(limit.try_admit().unwrap());
        assert_eq!((limit.inside(), limit.admitted(), limit.refused(), limit.peak()), (5, 6, 1, 5));
        places.clear();
        assert_eq!((limit.inside(), limit.peak()), (0, 5));
    }

    #[test]
    fn a_limit_of_zero_refuses_each_caller() {
        let limit = AdmissionLimit::new("closed", 0);
        assert_eq!(limit.try_admit().unwrap_err(), Error::Full);
        assert_eq!((limit.refused(), limit.peak()), (1, 0));
    }

    #[test]
    fn a16_threads_that_rush_a_limit_are_never_more_than_that() {
        const EACH: u64 = 20_000;
        let (limit, start) = (AdmissionLimit::new("rushed", 3), Barrier::new(4));
        let rush = || {
            start.wait();
            for _ in 0..EACH {
                if let Ok(_place) = limit.try_admit() {
                    assert!(limit.inside() <= limit.limit());
                }
            }
        };
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(rush))));
        assert_eq!(limit.inside(), 0);
        assert_eq!(limit.admitted() + limit.refused(), 4 * EACH);
        assert!((1..=3).contains(&limit.peak()));
    }
}
