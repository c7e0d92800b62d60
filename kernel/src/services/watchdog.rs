//! A thread that looks at the kernel from outside and reports a run that lasts too long while it
//! lasts: a kernel that is stuck cannot do so itself.
//!
//! The two threads share a pulse. The kernel's thread moves it at the start and the end of each run
//! and never waits for the other; the watchdog samples it a few times in its span.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use traps::core::names::Site;
use traps::threads::quietly;

use crate::log::place_of;
use crate::trace::Span;

/// A run that lasts too long, as the watchdog sees it: which task, and for how long so far.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// Its number.
    pub task: u64,
    /// Its name.
    pub name: String,
    /// Where it was spawned, `file:line`.
    pub spawned_at: String,
    /// By the real clock, since the watchdog first saw this run: the run itself is older, by a
    /// quarter of the watchdog's span at most.
    pub lasted: Duration,
    /// The run is over: this is the last report about it.
    pub over: bool,
}

/// `stuck: task 3 spin holds the CPU for 0.1s now, spawned at examples/spin.rs:12`.
impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stuck { task, name, spawned_at, lasted, over } = self;
        let millis = u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX);
        let lasted = Span(Duration::from_millis(millis));
        if *over {
            write!(f, "stuck no more: task {task} {name} held the CPU for about {lasted}")
        } else {
            write!(f, "stuck: task {task} {name} holds the CPU for {lasted} now, ")?;
            write!(f, "spawned at {spawned_at}")
        }
    }
}

/// Called with each report of the watchdog.
type Hook = Arc<dyn Fn(&Stuck) + Send + Sync>;

/// The kernel's end of the watchdog.
#[derive(Default)]
pub(crate) struct Watchdog {
    pulse: Arc<Pulse>,
    /// `None`: nobody looks.
    thread: Option<JoinHandle<()>>,
    /// Of the pulse.
    beat: u64,
}

/// What the two threads share.
#[derive(Default)]
struct Pulse {
    /// Odd while a task runs; never the same for two runs.
    beat: AtomicU64,
    /// The kernel is gone.
    ended: AtomicBool,
    /// The task that ran last: number, name, and where it was spawned.
    who: Mutex<(u64, String, Option<Site>)>,
    hook: Mutex<Option<Hook>>,
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
    /// Has `hook` called with each report.
    pub(crate) fn set_hook(&mut self, hook: impl Fn(&Stuck) + Send + Sync + 'static) {
        *enter(&self.pulse.hook) = Some(Arc::new(hook));
    }

    /// Starts the thread if it is wanted and not there.
    pub(crate) fn start(&mut self, span: Option<Duration>) -> io::Result<()> {
        if let (Some(span), None) = (span, &self.thread) {
            let pulse = self.pulse.clone();
            let span = span.max(Duration::from_millis(1));
            let thread = thread::Builder::new().name("trapline-watchdog".to_owned());
            self.thread = Some(thread.spawn(move || pulse.watch(span))?);
        }
        Ok(())
    }

    /// A run begins, of that task, which was spawned there.
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

    /// It is over.
    pub(crate) fn end(&mut self) {
        if self.is_on() {
            self.move_on();
        }
    }
}

impl Drop for Watchdog {
    /// Ends the thread, after its last report.
    fn drop(&mut self) {
        self.pulse.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the hook was caught.
            let _ = thread.join();
        }
    }
}

impl Pulse {
    /// The life of the thread.
    fn watch(&self, span: Duration) {
        let (mut run, mut since, mut next) = (0, Instant::now(), span);
        let mut said: Option<Stuck> = None;
        loop {
            let ended = self.ended.load(Ordering::Acquire);
            let (beat, now) = (self.beat.load(Ordering::Acquire), Instant::now());
            if beat != run {
                if let Some(stuck) = said.take() {
                    self.say(&Stuck { lasted: now - since, over: true, ..stuck });
                }
                (run, since, next) = (beat, now, span);
            }
            if ended {
                return;
            }
            let lasted = now - since;
            if run % 2 == 1 && lasted >= next {
                next = lasted.saturating_mul(2);
                said = self.say_stuck(run, lasted).or(said);
            }
            thread::park_timeout((span / 4).max(Duration::from_millis(1)));
        }
    }

    fn say_stuck(&self, run: u64, lasted: Duration) -> Option<Stuck> {
        let (task, name, site) = enter(&self.who).clone();
        let spawned_at = site.map(place_of).unwrap_or_default();
        let stuck = Stuck { task, name, spawned_at, lasted, over: false };
        // Otherwise it has ended meanwhile, and this may be another task.
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

/// A poisoned lock still guards whole values: nothing foreign runs under it.
fn enter<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
