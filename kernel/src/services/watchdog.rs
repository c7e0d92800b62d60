//! The watchdog: a thread that reports a long run of a task while the run lasts. A stuck kernel
//! cannot report itself.
//!
//! The two threads share a *pulse*, a counter. The kernel's thread increments it at the start and
//! at the end of each run, and never waits for the watchdog. The watchdog reads it four times per
//! limit. If the pulse is odd and has not changed for the limit, the run is too long.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use traps::Site;
use traps::internal::quietly;

use crate::log::words::place_of;
use crate::machine::CpuClock;
use crate::trace::Span;

/// A report of the watchdog: the task whose run is too long, and the duration of the run so far.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// The number of the task.
    pub task: u64,
    /// The name of the task.
    pub name: String,
    /// The location of the task's spawn, `file:line`.
    pub spawned_at: String,
    /// The real time since the watchdog first saw this run. The run itself is older, by at most a
    /// quarter of the watchdog's limit.
    pub lasted: Duration,
    /// The CPU time that the kernel's thread has used in this time. `None` if the system does not
    /// report it. If it is far less than `lasted`, the task blocks the thread, or other threads and
    /// processes have the CPU.
    pub cpu: Option<Duration>,
    /// Whether the run has ended. Then this is the last report about it.
    pub over: bool,
}

/// Prints `stuck: task 3 spin has run for 0.1s now, 98ms on a CPU, spawned at examples/spin.rs:10`.
impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stuck { task, name, spawned_at, lasted, cpu, over } = self;
        let millis = |span: &Duration| {
            let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
            Span(Duration::from_millis(millis))
        };
        let (lasted, cpu) = (millis(lasted), cpu.as_ref().map(millis));
        let cpu = cpu.map(|cpu| format!(", {cpu} on a CPU")).unwrap_or_default();
        if *over {
            write!(f, "stuck no more: task {task} {name} ran for about {lasted}{cpu}")
        } else {
            write!(f, "stuck: task {task} {name} has run for {lasted} now{cpu}, ")?;
            write!(f, "spawned at {spawned_at}")
        }
    }
}

/// The owner's hook, called with each report of the watchdog.
type StuckHook = Arc<dyn Fn(&Stuck) + Send + Sync>;

/// The watchdog as the kernel's thread sees it.
#[derive(Default)]
pub(crate) struct Watchdog {
    pulse: Arc<Pulse>,
    /// The watchdog's thread. `None` if the watchdog is off.
    thread: Option<JoinHandle<()>>,
    /// The kernel's copy of the pulse's beat.
    beat: u64,
}

/// The state that the two threads share.
#[derive(Default)]
struct Pulse {
    /// The counter of the starts and ends of runs, which is odd while a task runs. No two runs have
    /// the same value.
    beat: AtomicU64,
    /// Whether the kernel is gone.
    ended: AtomicBool,
    /// The task that ran last: its number, its name, and the location of its spawn.
    who: Mutex<(u64, String, Option<Site>)>,
    hook: Mutex<Option<StuckHook>>,
    /// Makes a dump of the flight recorder, when a run is first reported.
    dump: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl Watchdog {
    pub(crate) fn is_on(&self) -> bool {
        self.thread.is_some()
    }

    fn move_on(&mut self) {
        self.beat += 1;
        self.pulse.beat.store(self.beat, Ordering::Release);
    }
}

impl Watchdog {
    /// Sets the hook that gets each report.
    pub(crate) fn set_hook(&mut self, hook: impl Fn(&Stuck) + Send + Sync + 'static) {
        *enter(&self.pulse.hook) = Some(Arc::new(hook));
    }

    /// Sets what makes a dump of the flight recorder.
    pub(crate) fn set_dump(&mut self, dump: impl Fn() + Send + 'static) {
        *enter(&self.pulse.dump) = Some(Box::new(dump));
    }

    /// Starts the watchdog's thread, if the options ask for it and it does not exist yet.
    pub(crate) fn start(&mut self, span: Option<Duration>) -> io::Result<()> {
        if let (Some(span), None) = (span, &self.thread) {
            let pulse = self.pulse.clone();
            let span = span.max(Duration::from_millis(1));
            let thread = thread::Builder::new().name("trapline-watchdog".to_owned());
            let clock = CpuClock::of_this_thread();
            self.thread = Some(thread.spawn(move || pulse.watch(span, clock))?);
        }
        Ok(())
    }

    /// Marks the beginning of a run of `task`, which was spawned at `site`.
    pub(crate) fn begin(&mut self, (task, name): (u64, &str), site: Option<Site>) {
        if self.is_on() {
            let mut who = enter(&self.pulse.who);
            if who.0 != task {
                *who = (task, name.to_owned(), site);
            }
            drop(who);
            self.move_on();
        }
    }

    /// Returns a guard that ends the present run when it is dropped: after the panic of an observer
    /// no task runs any more, but nothing has marked the end of the run.
    pub(crate) fn idle_at_the_end(&self) -> Idle {
        Idle(self.pulse.clone())
    }

    /// Marks the end of the run.
    pub(crate) fn end(&mut self) {
        if self.is_on() {
            self.move_on();
        }
    }
}

/// See [`Watchdog::idle_at_the_end`].
pub(crate) struct Idle(Arc<Pulse>);

impl Drop for Idle {
    fn drop(&mut self) {
        // The other side of the pulse only reads.
        let beat = self.0.beat.load(Ordering::Relaxed);
        self.0.beat.store(beat + beat % 2, Ordering::Release);
    }
}

impl Drop for Watchdog {
    /// Ends the watchdog's thread, after its last report.
    fn drop(&mut self) {
        self.pulse.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The result carries no panic: panics of the hook are caught.
            let _ = thread.join();
        }
    }
}

impl Pulse {
    /// Runs the watchdog's thread.
    fn watch(&self, span: Duration, clock: Option<CpuClock>) {
        let cpu = || clock.and_then(CpuClock::read);
        let (mut run, mut since, mut next, mut base) = (0, Instant::now(), span, cpu());
        let mut said: Option<Stuck> = None;
        loop {
            let ended = self.ended.load(Ordering::Acquire);
            let (beat, now) = (self.beat.load(Ordering::Acquire), Instant::now());
            let used = |base: Option<Duration>, lasted: Duration| {
                cpu().zip(base).map(|(now, base)| now.saturating_sub(base).min(lasted))
            };
            if beat != run {
                if let Some(stuck) = said.take() {
                    let lasted = now - since;
                    self.say(&Stuck { lasted, cpu: used(base, lasted), over: true, ..stuck });
                }
                (run, since, next, base) = (beat, now, span, cpu());
            }
            if ended {
                return;
            }
            let lasted = now - since;
            if run % 2 == 1 && lasted >= next {
                next = lasted.saturating_mul(2);
                let is_first = said.is_none();
                said = self.say_stuck(run, lasted, used(base, lasted)).or(said);
                if is_first && said.is_some() {
                    enter(&self.dump).iter().for_each(|dump| dump());
                }
            }
            thread::park_timeout((span / 4).max(Duration::from_millis(1)));
        }
    }

    fn say_stuck(&self, run: u64, lasted: Duration, cpu: Option<Duration>) -> Option<Stuck> {
        let (task, name, site) = enter(&self.who).clone();
        let spawned_at = site.map(place_of).unwrap_or_default();
        let stuck = Stuck { task, name, spawned_at, lasted, cpu, over: false };
        // If the beat has changed, the run has ended, and `who` may be another task.
        (self.beat.load(Ordering::Acquire) == run).then(|| {
            self.say(&stuck);
            stuck
        })
    }

    fn say(&self, stuck: &Stuck) {
        let hook = enter(&self.hook).clone();
        quietly(|| {
            log::warn!(target: "kernel::sched", "{stuck}");
            hook.iter().for_each(|hook| hook(stuck));
        });
    }
}

/// Locks a mutex. A poisoned lock still guards whole values, because no user code runs under it.
fn enter<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::{Kernel, Options, Real};

    const MS: Duration = Duration::from_millis(1);

    /// A pulse whose task is number `task`, and what the watchdog has reported.
    fn pulse(task: u64) -> (Arc<Pulse>, Arc<Mutex<Vec<Stuck>>>) {
        let (pulse, said) = (Arc::new(Pulse::default()), Arc::<Mutex<Vec<Stuck>>>::default());
        let theirs = said.clone();
        *enter(&pulse.hook) = Some(Arc::new(move |stuck| enter(&theirs).push(stuck.clone())));
        enter(&pulse.who).0 = task;
        (pulse, said)
    }

    /// The real clock is the subject: the watchdog looks many times before the run begins.
    #[test]
    fn a_kernel_between_two_runs_is_not_stuck_however_long_it_is_idle() {
        let (pulse, said) = pulse(1);
        pulse.beat.store(2, Ordering::Release);
        let theirs = pulse.clone();
        let watchdog = thread::spawn(move || theirs.watch(MS, None));
        thread::sleep(50 * MS);
        enter(&pulse.who).0 = 2;
        pulse.beat.store(3, Ordering::Release);
        let begin = Instant::now();
        while enter(&said).is_empty() && begin.elapsed() < 60_000 * MS {
            thread::yield_now();
        }
        pulse.beat.store(4, Ordering::Release);
        pulse.ended.store(true, Ordering::Release);
        watchdog.join().unwrap();
        let said = enter(&said);
        assert!(!said.is_empty() && said.iter().all(|stuck| stuck.task == 2), "{said:?}");
    }

    /// The watchdog calls no kernel stuck whose beat is even.
    #[test]
    fn a_kernel_that_runs_no_task_is_between_two_runs_also_after_a_panic() {
        let kernel = || {
            let options = Options::new().watchdog(Some(Duration::from_secs(3600)));
            Kernel::with_options(Real::new().unwrap(), options)
        };
        let is_between = |kernel: &Kernel<Real>| {
            let beat = kernel.services.watchdog.pulse.beat.load(Ordering::Acquire);
            beat > 0 && beat.is_multiple_of(2)
        };
        let panics = async || panic!("a panic that is wanted");
        let mut first = kernel();
        let ran = first.run(async {
            traps::yield_now().await?;
            let ended = traps::spawn("panics", panics()).await.join().await;
            traps::sleep(MS).await?;
            Ok::<_, traps::Interrupt>(ended.is_err())
        });
        assert!(ran.unwrap().unwrap() && is_between(&first));
        let main = catch_unwind(AssertUnwindSafe(|| first.run(panics())));
        assert!(main.is_err() && is_between(&first), "a panic of main");
        let _ = first.shutdown();
        assert!(is_between(&first), "after the shutdown");
        drop(first);
        let mut second = kernel();
        second.observe(|line: &crate::trace::Line<'_>| {
            assert_ne!(line.event.verb(), "note", "a panic that is wanted");
        });
        let main = catch_unwind(AssertUnwindSafe(|| second.run(async { traps::note("now") })));
        assert!(main.is_err() && is_between(&second), "a panic of an observer");
    }

    #[test]
    fn a_run_that_has_ended_in_the_meantime_is_not_reported() {
        let (pulse, said) = pulse(1);
        pulse.beat.store(5, Ordering::Release);
        assert_eq!(pulse.say_stuck(3, MS, None), None);
        assert!(enter(&said).is_empty());
        assert!(pulse.say_stuck(5, MS, None).is_some_and(|stuck| stuck.task == 1 && !stuck.over));
        assert_eq!(enter(&said).len(), 1);
    }
}
