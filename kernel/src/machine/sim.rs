//! The simulated machine: a clock that jumps, and a world that follows a script.
//!
//! A wait plays the steps of the script that are due. If none has brought an arrival, the clock
//! jumps to the next step or to the end of the wait, whichever comes first. Nothing here reads a
//! real clock or the environment. Only two things make the clock stand still: a job on a real
//! thread, and a wait that is marked external.
//!
//! A script can ask for the *liberties* that a real system takes: lateness ([`Sim::late_by`]),
//! spurious readiness ([`Sim::ready_at`] without bytes to read), and any order of what happens at
//! one instant ([`Sim::seed`]). Short reads come from the pipe in memory. An explorer takes all of
//! these liberties at any point, and some more: see [`traps::internal::liberty`].

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, SystemTime};
use std::{io, mem};

use traps::internal::liberty::{self, Liberty, draw};
use traps::internal::table::{Descriptor, Direction, TaskIndex};
use traps::{Signal, SignalSet, Time};

use super::sealed::Driver;
use super::{Arrivals, Bell, Deliver, IoEvent, JobView, Parcel, WaitLimit};

/// The longest delay that an explorer of schedules may add to a wait, as a power of two in
/// microseconds: 33 ms.
const LATEST: u64 = 15;
/// The longest time that an explorer may add to a job, as a power of two in microseconds: a second.
const LONGEST: u64 = 20;

/// The function that determines how long a job takes.
type JobSpans = dyn FnMut(&JobView) -> Option<Duration>;

/// A machine with a virtual clock and a script. The crate `testing` explains how to write tests
/// with it.
///
/// Under an explorer (`testing::explore`) it takes every liberty of a machine, in addition to the
/// liberties of the script: time passes unnoticed, descriptors look ready although they are not,
/// and jobs take longer.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use kernel::{Kernel, Sim};
///
/// let mut kernel = Kernel::new(Sim::new());
/// let woke = kernel.run(async { traps::sleep(Duration::from_secs(3600)).await }).unwrap();
/// assert_eq!(woke.unwrap().as_micros(), 3_600_000_000); // and no second has passed
/// ```
#[derive(Default)]
pub struct Sim {
    clock: SimClock,
    late: Duration,
    seed: u64,
    /// The script, ordered by time and then by rank.
    script: BTreeMap<(Time, u64), Step>,
    steps: u64,
    /// The tokens of registered descriptors, by descriptor.
    tokens: BTreeMap<u32, u64>,
    /// The readiness that came before its descriptor was registered.
    early: Vec<(u32, Direction)>,
    job_spans: Option<Box<JobSpans>>,
    /// Whether every wait fails.
    has_failed: bool,
    bell: Arc<SimBell>,
    /// The time of day that was set last, and the kernel time of this setting. `None` before the
    /// first setting.
    wall: Rc<Cell<Option<(SystemTime, Time)>>>,
    /// The signals that the kernel watches. Other signals have no effect.
    watched: SignalSet,
    /// The signals that the machine refuses to report.
    #[cfg(test)]
    pub(crate) refused: SignalSet,
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim")
            .field("seed", &self.seed)
            .field("steps", &self.script.len())
            .finish_non_exhaustive()
    }
}

enum Step {
    Ready(u32, Direction),
    Signal(Signal),
    Wall(SystemTime),
    Job(u64, Parcel, Deliver),
    Failure,
}

/// The bell's state, and the kernel's thread, which waits for the bell.
struct SimBell(AtomicBool, Thread);

impl Default for SimBell {
    fn default() -> SimBell {
        SimBell(AtomicBool::new(false), thread::current())
    }
}

impl Bell for SimBell {
    fn ring(&self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}

impl Sim {
    /// Makes a machine with its clock at zero and an empty script. Jobs run on real threads.
    #[must_use]
    pub fn new() -> Sim {
        Sim::default()
    }

    /// Makes a machine whose clock starts at `time`, for tests of code near the end of time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Kernel, Sim};
    /// use traps::Time;
    ///
    /// let start = Time::ZERO + Duration::from_secs(1 << 40); // some 35,000 years
    /// let mut kernel = Kernel::new(Sim::starting_at(start));
    /// assert_eq!(kernel.run(traps::clock()).unwrap(), start);
    /// ```
    #[must_use]
    pub fn starting_at(time: Time) -> Sim {
        let sim = Sim::new();
        sim.clock.reach(time);
        sim
    }

    /// Returns the clock, to be advanced by hand.
    #[must_use]
    pub fn clock(&self) -> SimClock {
        self.clock.clone()
    }

    /// Delays by `span` the end of every wait that the clock ends, as a busy host does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Kernel, Sim};
    ///
    /// let mut kernel = Kernel::new(Sim::new().late_by(Duration::from_millis(7)));
    /// let woke = kernel.run(traps::sleep(Duration::from_secs(1)));
    /// assert_eq!(woke.unwrap().unwrap().as_micros(), 1_007_000);
    /// ```
    #[must_use]
    pub fn late_by(mut self, span: Duration) -> Sim {
        self.late = span;
        self
    }

    /// Orders the steps of the script at one instant (descriptors, ends of jobs) at random, as a
    /// system may report them in any order. The order is drawn from `seed`, which the first line of
    /// a trace shows. Only later steps are affected: the order of earlier steps of the script was
    /// drawn already. With 0 the steps keep the order of the script, which is the default. Timers
    /// with the same deadline keep their own order, which is the same on all machines.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Kernel, Sim};
    /// use traps::io::{Direction, Io, Scripted};
    /// use traps::{Error, TaskGroup, Time};
    ///
    /// let at = Time::ZERO + Duration::from_secs(1);
    /// let first = |seed| {
    ///     let sim = Sim::new().seed(seed); // before the steps that it orders
    ///     let sim = sim.ready_at(at, 1, Direction::Read).ready_at(at, 2, Direction::Read);
    ///     let first = Kernel::new(sim).run(async {
    ///         let mut group = TaskGroup::<u32, Error>::new();
    ///         for number in [1, 2] {
    ///             let socket = Io::new(Scripted(number));
    ///             let reads = async move { socket.readable().await.map(|()| number) };
    ///             group.spawn("reader", reads).await;
    ///         }
    ///         group.join_any().await
    ///     });
    ///     first.unwrap().unwrap().unwrap()
    /// };
    /// assert_eq!(first(0), 1); // the order of the script
    /// assert!((1..9).any(|seed| first(seed) == 2));
    /// ```
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Sim {
        self.seed = seed;
        self
    }

    /// Makes a scripted descriptor ready at `time`. Like a real edge, this reports a change only:
    /// if a task finds no bytes, the readiness was spurious.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Kernel, Sim};
    /// use traps::Time;
    /// use traps::io::{Direction, Io, Scripted};
    ///
    /// let at = Time::ZERO + Duration::from_secs(5);
    /// let mut kernel = Kernel::new(Sim::new().ready_at(at, 7, Direction::Read));
    /// let woke = kernel.run(async {
    ///     Io::new(Scripted(7)).readable().await?;
    ///     Ok::<_, traps::Error>(traps::clock().await)
    /// });
    /// assert_eq!(woke.unwrap(), Ok(at));
    /// ```
    #[must_use]
    pub fn ready_at(self, time: Time, descriptor: u32, direction: Direction) -> Sim {
        self.step(time, Step::Ready(descriptor, direction))
    }

    /// Sends a signal at `time`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Kernel, Sim};
    /// use traps::{Signal, Time, wait_signal};
    ///
    /// let at = Time::ZERO + Duration::from_secs(5);
    /// let mut kernel = Kernel::new(Sim::new().signal_at(at, Signal::Hangup));
    /// let got = kernel.run(async {
    ///     (wait_signal(&[Signal::Hangup]).await, traps::clock().await)
    /// });
    /// assert_eq!(got.unwrap(), (Ok(Signal::Hangup), at));
    /// ```
    #[must_use]
    pub fn signal_at(self, time: Time, signal: Signal) -> Sim {
        self.step(time, Step::Signal(signal))
    }

    /// Sets the time of day to `to` at `time`, forwards or back. From then on it advances with the
    /// clock. At kernel time zero, the time of day is 2026-01-01T00:00:00Z.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use kernel::{Kernel, Sim};
    /// use traps::Time;
    ///
    /// let second = Duration::from_secs(1);
    /// let to = SystemTime::UNIX_EPOCH;
    /// let mut kernel = Kernel::new(Sim::new().wall_set_at(Time::ZERO + second, to));
    /// let read = kernel.run(async {
    ///     traps::sleep(3 * second).await.unwrap();
    ///     traps::wall_clock()
    /// });
    /// assert_eq!(read.unwrap(), to + 2 * second);
    /// ```
    #[must_use]
    pub fn wall_set_at(self, time: Time, to: SystemTime) -> Sim {
        self.step(time, Step::Wall(to))
    }

    /// Makes every job of `run_in_thread` take `span` on the virtual clock, without a thread. The
    /// closure of the job runs at its last instant, on the kernel's thread, so it must not wait for
    /// anything.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Kernel, Sim};
    /// use traps::{run_in_thread, timeout_after};
    ///
    /// let second = Duration::from_secs(1);
    /// let mut kernel = Kernel::new(Sim::new().jobs_take(3 * second));
    /// let slow = kernel.run(timeout_after(second, run_in_thread(|| 42)));
    /// assert!(slow.unwrap().is_err()); // the timeout came first
    /// ```
    #[must_use]
    pub fn jobs_take(self, span: Duration) -> Sim {
        self.job_spans(move |_| Some(span))
    }

    /// Makes each job take the time that `span` returns for it, on the virtual clock. `span` is
    /// called when the job gets its token. If it returns `None`, the job runs on a real thread.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Kernel, Sim};
    /// use traps::{Either, race, run_in_thread};
    ///
    /// // The first job takes a minute, each other job a second.
    /// let sim = Sim::new().job_spans(|job| {
    ///     Some(Duration::from_secs(if job.number == 1 { 60 } else { 1 }))
    /// });
    /// let won = Kernel::new(sim).run(race(run_in_thread(|| "slow"), run_in_thread(|| "quick")));
    /// assert_eq!(won.unwrap(), Either::Right(Ok("quick")));
    /// ```
    #[must_use]
    pub fn job_spans(mut self, span: impl FnMut(&JobView) -> Option<Duration> + 'static) -> Sim {
        self.job_spans = Some(Box::new(span));
        self
    }

    /// Makes every wait from `time` on fail, as on a system whose poller is gone. The run then ends
    /// with [`RunError::Machine`](crate::RunError::Machine).
    ///
    /// ```
    /// use std::time::Duration;
    /// use kernel::{Kernel, RunError, Sim};
    /// use traps::Time;
    ///
    /// let mut kernel = Kernel::new(Sim::new().fails_at(Time::ZERO + Duration::from_secs(1)));
    /// let failed = kernel.run(traps::sleep(Duration::from_secs(9)));
    /// assert!(matches!(failed, Err(RunError::Machine(_))));
    /// ```
    #[must_use]
    pub fn fails_at(self, time: Time) -> Sim {
        self.step(time, Step::Failure)
    }

    fn step(mut self, time: Time, step: Step) -> Sim {
        self.write(time, step);
        self
    }

    fn write(&mut self, time: Time, step: Step) {
        self.steps += 1;
        // The draw of an explorer is the highest byte, so it decides. Without an explorer it is 0,
        // and the steps of one instant keep the order in which they were written.
        let usual = draw(Liberty::Arrivals, 255) << 56 | self.steps;
        let place = if self.seed == 0 { usual } else { drawn(self.seed, self.steps) };
        self.script.insert((time, place), step);
    }

    /// Returns a spurious arrival for a registered descriptor, if an explorer chooses to have one.
    fn spurious(&self) -> Option<IoEvent> {
        let last = self.tokens.len().checked_sub(1)? as u64;
        draw(Liberty::Readiness, 1).checked_sub(1)?;
        let token = *self.tokens.values().nth(draw(Liberty::Readiness, last) as usize)?;
        let direction = [Direction::Read, Direction::Write][draw(Liberty::Readiness, 1) as usize];
        Some(arrival(token, direction))
    }

    fn play(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        let now = self.clock.now();
        while let Some(entry) = self.script.first_entry()
            && entry.key().0 <= now
        {
            match entry.remove_entry() {
                (_, Step::Ready(descriptor, direction)) => match self.tokens.get(&descriptor) {
                    Some(token) => arrivals.io.push(arrival(*token, direction)),
                    // Several changes before the first look count as one, as with a real edge.
                    None if self.early.contains(&(descriptor, direction)) => {}
                    None => self.early.push((descriptor, direction)),
                },
                (_, Step::Signal(signal)) => {
                    if self.watched.contains(signal) {
                        arrivals.signals.push(signal);
                    }
                }
                ((time, _), Step::Wall(to)) => self.wall.set(Some((to, time))),
                (_, Step::Failure) => self.has_failed = true,
                (_, Step::Job(job, parcel, deliver)) => {
                    parcel.run();
                    deliver(job);
                }
            }
        }
        arrivals.bell |= self.bell.0.swap(false, Ordering::Acquire);
        if self.has_failed { Err(io::Error::other("the script has it fail")) } else { Ok(()) }
    }
}

/// Returns a number that differs for each `step`: the output function of SplitMix64, which is one
/// to one, applied at `step` strides from the seed.
fn drawn(seed: u64, step: u64) -> u64 {
    let mut z = seed.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Draws a delay: none, or 2 to a power of up to `most`, in microseconds.
fn delay(liberty: Liberty, most: u64) -> Duration {
    let power = draw(liberty, most);
    Duration::from_micros(u64::from(power > 0) << power)
}

fn arrival(token: u64, direction: Direction) -> IoEvent {
    let readable = direction == Direction::Read;
    IoEvent { token, readable, writable: !readable, closed: false, urgent: false }
}

impl Driver for Sim {
    fn clock_name(&self) -> &'static str {
        "virtual"
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn now(&mut self) -> Time {
        self.clock.now()
    }

    fn mark(&mut self) -> u64 {
        // The kernel reads the mark between runs. So here an explorer makes time pass while tasks
        // run.
        self.clock.advance(delay(Liberty::Lateness, LATEST));
        // Wrap, because a clock may start near its end.
        self.clock.now().as_micros().wrapping_mul(1000)
    }

    fn wall_clock(&self) -> Box<dyn Fn() -> SystemTime> {
        let (clock, wall) = (self.clock(), self.wall.clone());
        Box::new(move || {
            // 2026-01-01T00:00:00Z at kernel time zero.
            let midnight = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
            let (set, at) = wall.get().unwrap_or((midnight, Time::ZERO));
            set + clock.now().since(at)
        })
    }

    fn order(&mut self, ready: &mut [TaskIndex]) {
        for last in 1..ready.len() {
            ready.swap(last, last - draw(Liberty::Order, last as u64) as usize);
        }
    }

    fn wait(&mut self, until: WaitLimit, arrivals: &mut Arrivals) -> io::Result<()> {
        loop {
            self.play(arrivals)?;
            let WaitLimit::Arrival { by, outside } = until else { return Ok(()) };
            if !arrivals.are_none() || by.is_some_and(|by| by <= self.clock.now()) {
                return Ok(());
            }
            if outside {
                // Threads do not follow the virtual clock: if it jumped now, a job of a millisecond
                // would be late for every timer. `ring` unparks this thread, even if it rings
                // before the park, and the next round finds the bell.
                thread::park();
                continue;
            }
            let scripted = self.script.first_key_value().map(|((time, _), _)| *time);
            let Some(next) = scripted.into_iter().chain(by).min() else {
                arrivals.hang = true;
                return Ok(());
            };
            if let Some(arrival) = self.spurious() {
                // The readiness arrives halfway to the next event.
                self.clock.advance(next.since(self.clock.now()) / 2);
                arrivals.io.push(arrival);
                return Ok(());
            }
            let late = if by == Some(next) { self.late } else { Duration::ZERO };
            self.clock.reach(next + late + delay(Liberty::Lateness, LATEST));
        }
    }

    fn register(&mut self, descriptor: Descriptor, token: u64) -> io::Result<()> {
        let Descriptor::Scripted(number) = descriptor else {
            let text = "the simulated machine has scripted descriptors only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        };
        if self.tokens.contains_key(&number) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        self.tokens.insert(number, token);
        let early = mem::take(&mut self.early).into_iter();
        let (early, others): (Vec<_>, _) = early.partition(|(early, _)| *early == number);
        self.early = others;
        for (_, direction) in early {
            self.write(self.clock.now(), Step::Ready(number, direction));
        }
        Ok(())
    }

    fn deregister(&mut self, descriptor: Descriptor) -> io::Result<()> {
        self.forget(descriptor);
        Ok(())
    }

    fn forget(&mut self, descriptor: Descriptor) {
        if let Descriptor::Scripted(number) = descriptor {
            self.tokens.remove(&number);
        }
    }

    fn bell(&self) -> Arc<dyn Bell> {
        self.bell.clone()
    }

    fn watch_signal(&mut self, signal: Signal) -> io::Result<()> {
        #[cfg(test)]
        if self.refused.contains(signal) {
            return Err(io::Error::other(format!("{signal} is refused")));
        }
        self.watched = self.watched.with(signal);
        Ok(())
    }

    fn thread_clock(&self) -> Box<dyn Fn() -> Time + Send + Sync> {
        let clock = self.clock();
        Box::new(move || clock.now())
    }

    fn play_job(
        &mut self,
        job: u64,
        view: &dyn Fn() -> JobView,
        parcel: Parcel,
        deliver: &Deliver,
    ) -> Option<Parcel> {
        let scripted = self.job_spans.as_mut().and_then(|span| span(&view()));
        let Some(span) = scripted.or(liberty::is_explored().then_some(Duration::ZERO)) else {
            return Some(parcel);
        };
        let end = self.clock.now() + span + delay(Liberty::Jobs, LONGEST);
        self.write(end, Step::Job(job, parcel, deliver.clone()));
        None
    }

    fn take_jobs(&mut self) -> Vec<(u64, Parcel)> {
        let mut jobs = Vec::new();
        for (place, step) in mem::take(&mut self.script) {
            match step {
                Step::Job(job, parcel, _) => jobs.push((job, parcel)),
                other => _ = self.script.insert(place, other),
            }
        }
        jobs
    }

    fn scripted(&self) -> usize {
        self.script.values().filter(|step| !matches!(step, Step::Job(..))).count()
    }

    fn has_io(&self) -> bool {
        false
    }
}

/// A handle to the virtual clock of a [`Sim`]. With it, code on any thread can spend time without a
/// wait, as a long computation does.
///
/// ```
/// use std::time::Duration;
/// use kernel::{Kernel, Sim};
/// use traps::{Time, sleep};
///
/// let second = Duration::from_secs(1);
/// let sim = Sim::new();
/// let time = sim.clock();
/// let woke = Kernel::new(sim).run(async move {
///     time.advance(5 * second); // the task holds the CPU for five seconds
///     sleep(second).await
/// });
/// assert_eq!(woke.unwrap().unwrap(), Time::ZERO + 6 * second);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SimClock(Arc<AtomicU64>);

impl SimClock {
    /// Advances the clock by `span`, as if this time had passed while the caller holds the CPU.
    pub fn advance(&self, span: Duration) {
        let advance = |now| Some((Time::from_micros(now) + span).as_micros());
        // Another thread may advance the clock at the same time.
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, advance);
    }

    pub(super) fn reach(&self, time: Time) {
        self.0.fetch_max(time.as_micros(), Ordering::AcqRel);
    }

    /// Reads the clock.
    ///
    /// ```
    /// let clock = kernel::Sim::new().clock();
    /// clock.advance(std::time::Duration::from_secs(1));
    /// assert_eq!(clock.now().as_micros(), 1_000_000);
    /// ```
    #[must_use]
    pub fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::Acquire))
    }
}
