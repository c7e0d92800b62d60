//! A gate in front of scarce work: in while there is room, refused at once where there is none.
//!
//! Refusing is its whole purpose, so nobody ever waits here. Who means to wait takes a permit of a
//! [`WaitQueue`](crate::WaitQueue), or stands in line for a worker thread (row X9: two objects).
//! Knows no thread and no kernel, but for the `cap` lines.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::gate;
use crate::limits::GATE_PAUSE;
use crate::time::Time;
use crate::verbs::note_cap;

/// Lets a bounded number in and refuses the others, in the turn in which they ask and before any
/// thread is used (rows F5, F6, A16).
///
/// Clones are the same gate. It may be shared between threads; a place in it goes where the work
/// goes: moved into a job, it stays taken until the job's thread has really ended, even if the
/// caller gave up before.
///
/// ```no_run
/// use traps::admission::Gate;
/// use traps::{run_in_thread, threads::ThreadError};
///
/// async fn request_task(gate: &Gate) -> Result<String, ThreadError> {
///     let Ok(place) = gate.try_enter() else {
///         return Ok("too busy, ask again later".to_owned());
///     };
///     run_in_thread(move || {
///         let _place = place;
///         "a task".to_owned()
///     })
///     .await
/// }
/// ```
#[derive(Clone)]
pub struct Gate(Arc<Shared>);

struct Shared {
    name: &'static str,
    limit: u64,
    inside: AtomicU64,
    peak: AtomicU64,
    entered: AtomicU64,
    refused: AtomicU64,
    /// Refusals whose number no line has told.
    turned_away: AtomicU64,
    /// A line has told of the first of them, and nobody came in since.
    told: AtomicBool,
    /// When that line was, in microseconds of its kernel, and one more; zero before the first.
    last: AtomicU64,
}

impl Gate {
    /// A gate for `limit` at a time; one for none refuses everybody. The name is one word, for the
    /// log and for the error.
    #[must_use]
    pub fn new(name: &'static str, limit: u64) -> Gate {
        let zero = || AtomicU64::new(0);
        Gate(Arc::new(Shared {
            name,
            limit,
            inside: zero(),
            peak: zero(),
            entered: zero(),
            refused: zero(),
            turned_away: zero(),
            told: AtomicBool::new(false),
            last: zero(),
        }))
    }

    /// Goes in, until what is given back is dropped. Neither traps nor blocks; a few atomic
    /// operations.
    ///
    /// The first refusal after an entry puts a `cap` line into the log, unless the last such line
    /// is less than ten seconds old; the next entry puts one with the number of refusals if there
    /// were more, those counted that had no line before. Those on other threads are not logged.
    /// Where kernels share it that began at different times, the pause is shorter by as much.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is no room now.
    pub fn try_enter(&self) -> Result<Place, Refused> {
        let Shared { name, limit, inside, peak, entered, refused, told, .. } = &*self.0;
        let grown = |inside| (inside < *limit).then_some(inside + 1);
        match inside.fetch_update(Ordering::Acquire, Ordering::Relaxed, grown) {
            Ok(before) => {
                peak.fetch_max(before + 1, Ordering::Relaxed);
                entered.fetch_add(1, Ordering::Relaxed);
                // Whoever enters where there is no log leaves it to the next.
                if told.load(Ordering::Relaxed) && gate::epoch() != 0 {
                    self.0.tell_how_many();
                }
                Ok(Place(self.0.clone()))
            }
            Err(_) => {
                refused.fetch_add(1, Ordering::Relaxed);
                // Where no kernel runs there is no log to tell.
                if gate::epoch() != 0 {
                    self.0.tell_first(gate::time_by_now());
                }
                Err(Refused { gate: name, limit: *limit })
            }
        }
    }

    /// As named when it was made.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// How many it lets in at a time.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// How many are in now.
    #[must_use]
    pub fn inside(&self) -> u64 {
        self.0.inside.load(Ordering::Relaxed)
    }

    /// The most that were in at one time.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.0.peak.load(Ordering::Relaxed)
    }

    /// How often somebody came in.
    #[must_use]
    pub fn entered(&self) -> u64 {
        self.0.entered.load(Ordering::Relaxed)
    }

    /// How often somebody was refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Somebody was refused. Where it lets people in and refuses others all the time, each entry
    /// would make the next refusal news, and clients fill the log as fast as they like.
    fn tell_first(&self, now: Time) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
        if self.told.load(Ordering::Relaxed) || !self.may_tell(now) {
            return;
        }
        if !self.told.swap(true, Ordering::Relaxed) {
            self.last.store(now.as_micros().saturating_add(1), Ordering::Relaxed);
            note_cap(format!("name={} limit={}", self.name, self.limit));
        }
    }

    /// Whether the last line is old enough. One from the future is of another kernel's clock.
    fn may_tell(&self, now: Time) -> bool {
        let last = self.last.load(Ordering::Relaxed);
        let Some(last) = last.checked_sub(1).map(Time::from_micros) else { return true };
        now < last || now.since(last) >= GATE_PAUSE
    }

    /// Somebody came in after that.
    #[cold]
    fn tell_how_many(&self) {
        if self.told.swap(false, Ordering::Relaxed) {
            let away = self.turned_away.swap(0, Ordering::Relaxed);
            if away > 1 {
                note_cap(format!("name={} limit={} refused={away}", self.name, self.limit));
            }
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("name", &self.name())
            .field("limit", &self.limit())
            .field("inside", &self.inside())
            .finish_non_exhaustive()
    }
}

/// A place inside a [`Gate`], given up when it is dropped, on any thread.
#[must_use = "a place that is dropped is given up at once"]
pub struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Release);
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place in {}", self.0.name)
    }
}

/// There was no room in a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The gate's name.
    pub gate: &'static str,
    /// How many it lets in at a time.
    pub limit: u64,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the gate {} is full: it lets {} in at a time", self.gate, self.limit)
    }
}

impl std::error::Error for Refused {}

/// Of kind [`ResourceBusy`](io::ErrorKind::ResourceBusy).
impl From<Refused> for io::Error {
    fn from(refused: Refused) -> io::Error {
        io::Error::new(io::ErrorKind::ResourceBusy, refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn f5_the_sixth_of_five_is_refused_until_one_leaves() {
        let gate = Gate::new("request_task", 5);
        let mut places: Vec<Place> = (0..5).map(|_| gate.try_enter().unwrap()).collect();
        let refused = gate.try_enter().unwrap_err();
        assert_eq!(refused.to_string(), "the gate request_task is full: it lets 5 in at a time");
        assert_eq!(io::Error::from(refused).kind(), io::ErrorKind::ResourceBusy);
        places.pop();
        places.push(gate.try_enter().unwrap());
        assert_eq!((gate.inside(), gate.entered(), gate.refused(), gate.peak()), (5, 6, 1, 5));
        places.clear();
        assert_eq!((gate.inside(), gate.peak()), (0, 5));
    }

    #[test]
    fn a_gate_for_none_refuses_everybody() {
        let gate = Gate::new("closed", 0);
        assert_eq!(gate.try_enter().unwrap_err(), Refused { gate: "closed", limit: 0 });
        assert_eq!((gate.refused(), gate.peak()), (1, 0));
    }

    #[test]
    fn a16_threads_that_rush_a_gate_are_never_more_than_its_limit() {
        const EACH: u64 = 20_000;
        let (gate, start) = (Gate::new("rushed", 3), Barrier::new(4));
        let rush = || {
            start.wait();
            for _ in 0..EACH {
                if let Ok(_place) = gate.try_enter() {
                    assert!(gate.inside() <= gate.limit());
                }
            }
        };
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(rush))));
        assert_eq!(gate.inside(), 0);
        assert_eq!(gate.entered() + gate.refused(), 4 * EACH);
        assert!((1..=3).contains(&gate.peak()));
    }
}
