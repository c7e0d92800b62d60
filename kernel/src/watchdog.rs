//! A thread that looks at the kernel from outside and says when one run lasts too long, while it
//! still does: a kernel that is stuck cannot (row C36).
//!
//! The two threads share a pulse. The kernel's thread moves it at the start and the end of each run
//! and never waits for the other; the watchdog samples it, and sleeps while the kernel does. By
//! sampling alone it cannot tell a run that goes on from one that is over and began anew, so each
//! run moves the pulse to a number of its own.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use traps::protocol::Site;

use crate::kernel::Kernel;
use crate::log::place_of;
use crate::machine::{Machine, sys};
use crate::trace::Span;
use traps::threads::quietly;

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
    /// The task has let go of the CPU: the last word about this run.
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

/// What is called with each word of the watchdog.
type Hook = Arc<dyn Fn(&Stuck) + Send + Sync>;

/// The kernel's end of the watchdog.
#[derive(Default)]
pub(crate) struct Watchdog {
    hook: Option<Hook>,
    /// `None`: nobody looks.
    watch: Option<Watch>,
}

struct Watch {
    pulse: Arc<Pulse>,
    thread: Option<JoinHandle<()>>,
    /// Of the pulse.
    beat: u64,
    /// The task that `Pulse::who` describes.
    task: u64,
}

/// What the two threads share.
struct Pulse {
    /// Odd while a task runs; never the same for two runs.
    beat: AtomicU64,
    /// The watchdog is parked, or about to be: it wants to hear of the next run.
    parked: AtomicBool,
    /// The kernel is gone.
    ended: AtomicBool,
    /// Who runs. Right for a beat if that is the same before and after it was read.
    who: Mutex<Who>,
    hook: Mutex<Option<Hook>>,
}

struct Who {
    task: u64,
    name: String,
    site: Option<Site>,
}

impl Watchdog {
    pub(crate) fn is_on(&self) -> bool {
        self.watch.is_some()
    }
}

impl<M: Machine> Kernel<M> {
    /// Calls `hook` with what the watchdog ([`Options::watchdog`](crate::Options::watchdog)) sees:
    /// once when a run has lasted for its span, again each time that has doubled, and once when the
    /// run is over. The log has the same as a warning of the target `kernel::sched`.
    ///
    /// Called on the watchdog's thread, while the kernel's may be stuck: it must not wait for
    /// anything of the kernel's, and the kernel waits for it at its end. A panic in it is caught.
    pub fn on_stuck(&mut self, hook: impl Fn(&Stuck) + Send + Sync + 'static) {
        let hook: Hook = Arc::new(hook);
        if let Some(watch) = &self.watchdog.watch {
            *enter(&watch.pulse.hook) = Some(hook.clone());
        }
        self.watchdog.hook = Some(hook);
    }

    /// Starts the thread if it is wanted and not there.
    pub(crate) fn start_watchdog(&mut self) -> io::Result<()> {
        let Some(span) = self.options.watchdog else { return Ok(()) };
        if self.watchdog.watch.is_some() {
            return Ok(());
        }
        let pulse = Arc::new(Pulse {
            beat: AtomicU64::new(0),
            parked: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            who: Mutex::new(Who { task: 0, name: String::new(), site: None }),
            hook: Mutex::new(self.watchdog.hook.clone()),
        });
        let theirs = pulse.clone();
        let span = span.max(Duration::from_millis(1));
        let thread = thread::Builder::new().name("trapline-watchdog".to_owned());
        let thread = Some(thread.spawn(move || theirs.watch(span))?);
        self.watchdog.watch = Some(Watch { pulse, thread, beat: 0, task: 0 });
        Ok(())
    }

    /// A run begins.
    #[inline]
    pub(crate) fn begin_beat(&mut self, index: u32) {
        if let Some(watch) = &mut self.watchdog.watch {
            let (task, name) = self.tasks.label(index);
            watch.begin(task, name, self.tasks.site(index));
        }
    }

    /// It is over.
    #[inline]
    pub(crate) fn end_beat(&mut self) {
        if let Some(watch) = &mut self.watchdog.watch {
            watch.beat += 1;
            watch.pulse.beat.store(watch.beat, Ordering::Release);
        }
    }
}

impl Watch {
    #[cold]
    fn begin(&mut self, task: u64, name: &str, site: Option<Site>) {
        if self.task != task {
            self.task = task;
            let mut who = enter(&self.pulse.who);
            (who.task, who.site) = (task, site);
            who.name.clear();
            who.name.push_str(name);
        }
        self.beat += 1;
        // Beat, then look; the watchdog says that it parks, then looks at the beat. In one order of
        // all four, hence `SeqCst`, either we see that it parks or it sees that a task runs.
        self.pulse.beat.store(self.beat, Ordering::SeqCst);
        if self.pulse.parked.load(Ordering::SeqCst) {
            self.unpark();
        }
    }

    fn unpark(&self) {
        self.pulse.parked.store(false, Ordering::SeqCst);
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Drop for Watch {
    /// Ends the thread, after its last word.
    fn drop(&mut self) {
        self.pulse.ended.store(true, Ordering::SeqCst);
        self.unpark();
        if let Some(thread) = self.thread.take() {
            // It catches what its hook panics with.
            let _ = thread.join();
        }
    }
}

/// A run that the watchdog has seen more than once, or may yet.
struct Seen {
    beat: u64,
    since: Duration,
    /// When it has lasted so long, that is worth a word.
    next: Duration,
    /// The last word.
    told: Option<Stuck>,
}

impl Pulse {
    /// The life of the thread.
    fn watch(&self, span: Duration) {
        sys::block_all_signals(); // they are for the kernel thread
        let period = (span / 4).max(Duration::from_millis(1));
        let mut seen: Option<Seen> = None;
        loop {
            let beat = self.beat.load(Ordering::SeqCst);
            let now = sys::clock_monotonic();
            if let Some(run) = seen.take_if(|run| run.beat != beat) {
                self.say_over(run, now);
            }
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            if beat.is_multiple_of(2) {
                // No run, nothing to look at: the next one calls.
                self.parked.store(true, Ordering::SeqCst);
                if self.beat.load(Ordering::SeqCst) == beat && !self.ended.load(Ordering::SeqCst) {
                    thread::park();
                }
                self.parked.store(false, Ordering::SeqCst);
                continue;
            }
            let run = seen.get_or_insert(Seen { beat, since: now, next: span, told: None });
            let lasted = now.saturating_sub(run.since);
            if lasted >= run.next {
                while run.next <= lasted {
                    run.next = run.next.saturating_mul(2);
                }
                self.say_stuck(run, lasted);
            }
            thread::park_timeout(period);
        }
    }

    fn say_stuck(&self, run: &mut Seen, lasted: Duration) {
        let who = enter(&self.who);
        let stuck = Stuck {
            task: who.task,
            name: who.name.clone(),
            spawned_at: who.site.map(place_of).unwrap_or_default(),
            lasted,
            over: false,
        };
        drop(who);
        // Else it ended meanwhile, and this may be another.
        if self.beat.load(Ordering::SeqCst) == run.beat {
            self.say(&stuck);
            run.told = Some(stuck);
        }
    }

    fn say_over(&self, run: Seen, now: Duration) {
        if let Some(told) = run.told {
            let lasted = now.saturating_sub(run.since);
            self.say(&Stuck { lasted, over: true, ..told });
        }
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
