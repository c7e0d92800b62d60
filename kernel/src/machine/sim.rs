//! The simulated machine: a clock that jumps, and a world that follows a script.
//!
//! Its liberties, on request: lateness ([`Sim::late_by`]), spurious readiness ([`Sim::ready_at`]
//! with nothing behind it), any order of what happens at one instant ([`Sim::seed`]). Short reads
//! are a matter of who reads: of the pipe in memory.
//!
//! Reads no real clock and no environment; only a real thread without a script, or a wait that
//! was marked external, makes it stand still.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use traps::Signal;
use traps::Time;
use traps::protocol::{Descriptor, Direction};
use traps::threads::drop_quietly;

use super::sealed::Machine;
use super::sim_bell::SimBell;
use super::sim_clock::SimClock;
use super::{Arrival, Arrivals, Until};
use crate::jobs::JobView;
use crate::threads::{Deliver, Done};
use crate::tokens::Parcel;
use crate::wake::Bell;

/// How long a job takes.
type JobSpans = dyn FnMut(&JobView) -> Option<Duration>;

/// A virtual clock and a script. How to write tests with it: [`testing`](crate::testing).
///
/// ```
/// use std::time::Duration;
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
    /// What is to happen, by time and then by place.
    script: BTreeMap<(Time, u64), Step>,
    steps: u64,
    /// Registered descriptors, and readiness that came before its registration.
    tokens: BTreeMap<u32, u64>,
    early: Vec<(u32, Direction)>,
    job_spans: Option<Box<JobSpans>>,
    /// So many threads will not start.
    failing_starts: u32,
    /// No wait comes to anything any more.
    has_failed: bool,
    bell: Arc<SimBell>,
    /// The time of day that was set last, and when; none: as it starts.
    wall: Option<(SystemTime, Time)>,
    /// Signals that somebody wants to hear of; others do nothing.
    watched: Vec<Signal>,
}

enum Step {
    Ready(u32, Direction),
    Signal(Signal),
    Wall(SystemTime),
    Job(u64, Parcel, Deliver),
    Failure,
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Sim {
    /// A clock at zero and an empty script. Jobs run on real threads.
    #[must_use]
    pub fn new() -> Sim {
        Sim::default()
    }

    /// A clock that starts at `time`.
    #[must_use]
    pub fn starting_at(time: Time) -> Sim {
        let sim = Sim::new();
        sim.clock.reach(time);
        sim
    }

    /// The clock, to be advanced by hand.
    #[must_use]
    pub fn clock(&self) -> SimClock {
        self.clock.clone()
    }

    /// Every wait that ends by the clock ends so much later than it was asked to.
    #[must_use]
    pub fn late_by(mut self, span: Duration) -> Sim {
        self.late = span;
        self
    }

    /// Has things that happen at one instant (descriptors, the ends of jobs) happen in an order
    /// drawn from `seed`, as a system may report them in any; the head of a trace shows it. What is
    /// scripted before this has been drawn already. 0: in the order of the script, as without this.
    /// Timers of one deadline have an order of their own, which is the same on all machines.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Sim {
        self.seed = seed;
        self
    }

    /// Makes a scripted descriptor ready at `time`. Like the real edge, it tells of a change: a
    /// task that finds nothing there has met a spurious one.
    #[must_use]
    pub fn ready_at(self, time: Time, descriptor: u32, direction: Direction) -> Sim {
        self.step(time, Step::Ready(descriptor, direction))
    }

    /// Sends a signal at `time`.
    #[must_use]
    pub fn signal_at(self, time: Time, signal: Signal) -> Sim {
        self.step(time, Step::Signal(signal))
    }

    /// Sets the time of day to `to` at `time`, forwards or back; from there it goes on with the
    /// clock. It starts at 2026-01-01T00:00:00Z at kernel time zero.
    #[must_use]
    pub fn wall_set_at(self, time: Time, to: SystemTime) -> Sim {
        self.step(time, Step::Wall(to))
    }

    /// Every job of `run_in_thread` takes so long on the virtual clock and needs no thread: its
    /// closure runs at the last instant, on the kernel's thread, so it must not wait for anything.
    #[must_use]
    pub fn jobs_take(self, span: Duration) -> Sim {
        self.job_spans(move |_| Some(span))
    }

    /// The same for each job by itself, asked when it gets its token; `None`: it runs on a real
    /// thread.
    #[must_use]
    pub fn job_spans(mut self, span: impl FnMut(&JobView) -> Option<Duration> + 'static) -> Sim {
        self.job_spans = Some(Box::new(span));
        self
    }

    /// The first `n` jobs that are to be handed to a real thread find that none can be started, as
    /// a system does that is at its limits.
    #[must_use]
    pub fn thread_starts_fail(mut self, n: u32) -> Sim {
        self.failing_starts = n;
        self
    }

    /// From `time` on every wait fails, as on a system whose poller is gone.
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
        let place = if self.seed == 0 { self.steps } else { drawn(self.seed, self.steps) };
        self.script.insert((time, place), step);
    }

    fn play(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        let now = self.clock.now();
        while let Some(entry) = self.script.first_entry()
            && entry.key().0 <= now
        {
            match entry.remove_entry() {
                (_, Step::Ready(descriptor, direction)) => match self.tokens.get(&descriptor) {
                    Some(token) => arrivals.io.push(arrival(*token, direction)),
                    // As with the real edge, what comes before it is seen is one.
                    None if self.early.contains(&(descriptor, direction)) => {}
                    None => self.early.push((descriptor, direction)),
                },
                (_, Step::Signal(signal)) => {
                    if self.watched.contains(&signal) {
                        arrivals.signals.push(signal);
                    }
                }
                ((time, _), Step::Wall(to)) => self.wall = Some((to, time)),
                (_, Step::Failure) => self.has_failed = true,
                (_, Step::Job(job, Parcel { mut work, context }, deliver)) => {
                    work.run(context);
                    deliver(Done { job, work });
                }
            }
        }
        arrivals.bell |= self.bell.take();
        if self.has_failed { Err(io::Error::other("the script has it fail")) } else { Ok(()) }
    }
}

/// A number for each `step`, no two the same: the output function of SplitMix64, which is one to
/// one, at `step` strides from the seed.
fn drawn(seed: u64, step: u64) -> u64 {
    let mut z = seed.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn arrival(token: u64, direction: Direction) -> Arrival {
    let readable = direction == Direction::Read;
    Arrival { token, readable, writable: !readable, closed: false }
}

impl Machine for Sim {
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
        // Wrapping, as a clock may start near its end.
        self.clock.now().as_micros().wrapping_mul(1000)
    }

    fn passed(&mut self, mark: u64) -> Duration {
        Duration::from_nanos(self.mark().wrapping_sub(mark))
    }

    fn wall(&mut self) -> SystemTime {
        // 2026-01-01T00:00:00Z at kernel time zero.
        let midnight = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
        let (set, at) = self.wall.unwrap_or((midnight, Time::ZERO));
        set + self.clock.now().since(at)
    }

    fn wait(&mut self, until: Until, arrivals: &mut Arrivals) -> io::Result<()> {
        self.play(arrivals)?;
        let Until::Arrival { by: asked, outside } = until else { return Ok(()) };
        if !arrivals.are_none() || asked.is_some_and(|point| point <= self.clock.now()) {
            return Ok(());
        }
        if outside {
            // The world outside has no clock of ours.
            self.bell.wait();
            arrivals.bell = true;
            return Ok(());
        }
        loop {
            let scripted = self.script.first_key_value().map(|((time, _), _)| *time);
            let Some(next) = [scripted, asked].into_iter().flatten().min() else {
                arrivals.hang = true;
                return Ok(());
            };
            if next > self.clock.now() {
                let late = if asked == Some(next) { self.late } else { Duration::ZERO };
                self.clock.reach(next + late);
            }
            self.play(arrivals)?;
            if !arrivals.are_none() || asked.is_some_and(|point| point <= self.clock.now()) {
                return Ok(());
            }
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
        let now = self.clock.now();
        for (early, direction) in std::mem::take(&mut self.early) {
            if early == number {
                self.write(now, Step::Ready(number, direction));
            } else {
                self.early.push((early, direction));
            }
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
        if !self.watched.contains(&signal) {
            self.watched.push(signal);
        }
        Ok(())
    }

    fn thread_clock(&self) -> Box<dyn Fn() -> Time + Send + Sync> {
        let clock = self.clock();
        Box::new(move || clock.now())
    }

    fn scripts_jobs(&self) -> bool {
        self.job_spans.is_some()
    }

    fn job_span(&mut self, job: &JobView) -> Option<Duration> {
        self.job_spans.as_mut().and_then(|span| span(job))
    }

    fn play_job(&mut self, job: u64, parcel: Parcel, span: Duration, deliver: &Deliver) {
        let end = self.clock.now() + span;
        self.write(end, Step::Job(job, parcel, deliver.clone()));
    }

    fn drop_jobs(&mut self) {
        let script = std::mem::take(&mut self.script).into_iter();
        let is_job = |step: &Step| matches!(step, Step::Job(..));
        let (jobs, rest): (BTreeMap<_, _>, _) = script.partition(|(_, step)| is_job(step));
        self.script = rest;
        jobs.into_values().for_each(drop_quietly);
    }

    fn may_start_thread(&mut self) -> io::Result<()> {
        if self.failing_starts == 0 {
            return Ok(());
        }
        self.failing_starts -= 1;
        Err(io::Error::new(io::ErrorKind::WouldBlock, "the script refuses a thread"))
    }

    fn scripted(&self) -> usize {
        self.script.values().filter(|step| !matches!(step, Step::Job(..))).count()
    }

    fn has_io(&self) -> bool {
        false
    }
}
